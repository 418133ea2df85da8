/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where nvcc is, and where a library's headers are: where the user says, in the CUDA toolkit, among
 * the packages of Python, or in the system's folders.
 */
#include "library.h"

#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long Python may take to say where its packages are. */
#define PYTHON_NS UINT64_C(10000000000)

/* Writes a path; false when it does not fit. */
__attribute__((format(printf, 2, 3))) static bool join(char *path, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int used = vsnprintf(path, VENDORS_PATH_BYTES, format, arguments);
    va_end(arguments);
    return used >= 0 && used < VENDORS_PATH_BYTES;
}

/* Makes a path independent of the folder that a program runs in. */
static bool make_absolute(char *path)
{
    char real[PATH_MAX];

    if (path[0] == '/')
        return true;
    return realpath(path, real) && join(path, "%s", real);
}

/* ---- The compiler ---- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* The program `name` in a folder of $PATH. */
static bool search_path(const char *name, char *found)
{
    const char *list = getenv("PATH");

    while (list && *list) {
        int bytes = (int)strcspn(list, ":");
        if (bytes > 0 && join(found, "%.*s/%s", bytes, list, name) && is_program(found))
            return true;
        list += bytes;
        list += *list == ':';
    }
    return false;
}

static bool find_nvcc(char *nvcc, char *why)
{
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *named = getenv("NVCC");

    if (named && *named) {
        if (strchr(named, '/') ? join(nvcc, "%s", named) && is_program(nvcc)
                               : search_path(named, nvcc))
            return true;
        snprintf(why, VENDORS_WHY_BYTES, "NVCC=%.200s is no program", named);
        return false;
    }
    if (search_path("nvcc", nvcc))
        return true;
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
        const char *home = getenv(homes[i]);
        if (home && join(nvcc, "%s/bin/nvcc", home) && is_program(nvcc))
            return true;
    }
    if (join(nvcc, "/usr/local/cuda/bin/nvcc") && is_program(nvcc))
        return true;
    snprintf(why, VENDORS_WHY_BYTES,
             "no nvcc in PATH, CUDA_HOME or /usr/local/cuda; install the CUDA toolkit, or name the "
             "compiler in NVCC");
    return false;
}

bool vendors_find_nvcc(char *nvcc, char *why)
{
    return find_nvcc(nvcc, why) && make_absolute(nvcc);
}

/* ---- Headers ---- */

/* Whether a library's headers are in this folder; leaves it in `folder`. */
static bool has_headers(const struct vendors_library *library, const char *folder)
{
    char marker[2 * VENDORS_PATH_BYTES];

    snprintf(marker, sizeof(marker), "%s/%s", folder, library->marker);
    return access(marker, R_OK) == 0;
}

/* Looks below a folder, which may be that of the headers, of an installation, of Python's packages
 * of NVIDIA or of all of them. */
static bool look_in(const struct vendors_library *library, const char *root, char *folder)
{
    const char *package = library->package;

    if (!root || !*root)
        return false;
    return (join(folder, "%s", root) && has_headers(library, folder)) ||
           (join(folder, "%s/include", root) && has_headers(library, folder)) ||
           (join(folder, "%s/%s/include", root, package) && has_headers(library, folder)) ||
           (join(folder, "%s/nvidia/%s/include", root, package) && has_headers(library, folder));
}

/* Looks in each folder of a list. */
static bool look_in_list(const struct vendors_library *library, const char *list, char separator,
                         char *folder)
{
    const char separators[] = {separator, '\0'};
    char root[VENDORS_PATH_BYTES];

    while (*list) {
        int bytes = (int)strcspn(list, separators);
        if (join(root, "%.*s", bytes, list) && look_in(library, root, folder))
            return true;
        list += bytes;
        list += *list == separator;
    }
    return false;
}

static bool look_in_pattern(const struct vendors_library *library, const char *pattern,
                            char *folder)
{
    glob_t matches;
    bool found = false;

    if (glob(pattern, 0, NULL, &matches) != 0)
        return false;
    for (size_t i = 0; i < matches.gl_pathc && !found; i++)
        found = look_in(library, matches.gl_pathv[i], folder);
    globfree(&matches);
    return found;
}

/* The folder of the toolkit that nvcc is a part of. */
static bool look_in_toolkit(const struct vendors_library *library, const char *nvcc, char *folder)
{
    char real[PATH_MAX];

    if (!realpath(nvcc, real))
        return false;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(real, '/');
        if (slash)
            *slash = '\0';
    }
    return look_in(library, real, folder);
}

/* Asks the Python that the user runs where its packages of NVIDIA are. */
static bool look_in_python(const struct vendors_library *library, char *folder)
{
    char *const ask[] = {"python3", "-c", "import nvidia; print(*nvidia.__path__, sep='\\n')",
                         NULL};
    char work[VENDORS_PATH_BYTES], log[VENDORS_PATH_BYTES], answer[4 * VENDORS_PATH_BYTES];
    bool found = false;

    if (vendors_folder_make(work))
        return false;
    if (vendors_process(ask, work, "answer", PYTHON_NS) == 0 && join(log, "%s/answer", work)) {
        FILE *file = fopen(log, "r");
        size_t bytes = file ? fread(answer, 1, sizeof(answer) - 1, file) : 0;
        answer[bytes] = '\0';
        found = look_in_list(library, answer, '\n', folder);
        if (file)
            fclose(file);
    }
    vendors_folder_remove(work);
    return found;
}

/* Where Python keeps packages, below what a variable names or at a fixed place. */
static bool look_in_site_packages(const struct vendors_library *library, char *folder)
{
    static const struct {
        const char *variable;
        const char *below;
    } places[] = {
        {"VIRTUAL_ENV", "/lib/python3*/site-packages"},
        {"CONDA_PREFIX", "/lib/python3*/site-packages"},
        {"HOME", "/.local/lib/python3*/site-packages"},
        {NULL, "/usr/local/lib/python3*/dist-packages"},
        {NULL, "/usr/local/lib/python3*/site-packages"},
        {NULL, "/usr/lib/python3*/dist-packages"},
        {NULL, "/usr/lib/python3*/site-packages"},
        {NULL, "/opt/*/lib/python3*/site-packages"},
    };
    char pattern[VENDORS_PATH_BYTES];

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *root = places[i].variable ? getenv(places[i].variable) : "";
        if (root && join(pattern, "%s%s", root, places[i].below) &&
            look_in_pattern(library, pattern, folder))
            return true;
    }
    return false;
}

bool vendors_find_headers(const struct vendors_library *library, const char *nvcc, const char *path,
                          char *folder, char *why)
{
    char pattern[VENDORS_PATH_BYTES];

    if (path) {
        if (look_in_list(library, path, ':', folder) && make_absolute(folder))
            return true;
        snprintf(why, VENDORS_WHY_BYTES, "no headers of %s in %.200s: %s is in none of its folders",
                 library->vendor, path, library->marker);
        return false;
    }
    if (look_in(library, getenv(library->home), folder) || look_in_toolkit(library, nvcc, folder) ||
        look_in_python(library, folder) || look_in_site_packages(library, folder) ||
        look_in(library, "/usr/local", folder) || look_in(library, "/usr", folder))
        return true;
    if (join(pattern, "/usr/include/%s*", library->package) &&
        look_in_pattern(library, pattern, folder))
        return true;
    snprintf(
        why, VENDORS_WHY_BYTES,
        "no headers of %s in the CUDA toolkit, Python's packages or the system's folders; name "
        "their folder in --vendors=PATH",
        library->vendor);
    return false;
}

/* ---- The version ---- */

/* The number that a header defines a macro as, or -1. */
static int macro_value(const char *header, const char *macro)
{
    char line[256], name[128];
    FILE *file = fopen(header, "r");
    int value, found = -1;

    while (file && found < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, " # define %127s %d", name, &value) == 2 && strcmp(name, macro) == 0)
            found = value;
    if (file)
        fclose(file);
    return found;
}

void vendors_version(const struct vendors_library *library, const char *folder, char *text,
                     size_t bytes)
{
    char header[2 * VENDORS_PATH_BYTES];
    int part[3];

    snprintf(header, sizeof(header), "%s/%s", folder, library->version_header);
    for (int i = 0; i < 3; i++)
        part[i] = macro_value(header, library->version_macro[i]);
    if (part[0] < 0 || part[1] < 0 || part[2] < 0)
        snprintf(text, bytes, "%s of unknown version", library->vendor);
    else
        snprintf(text, bytes, "%s %d.%d.%d", library->vendor, part[0], part[1], part[2]);
}

bool vendors_made_for(const struct vendors_library *library, const char *text)
{
    size_t name = strlen(library->vendor);
    return strncmp(text, library->vendor, name) == 0 && text[name] == ' ' &&
           strcmp(text + name + 1, library->made_for) == 0;
}
