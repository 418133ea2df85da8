# SPDX-License-Identifier: BSD-3-Clause
"""Prints the results of `doorbell bench --out_json_file` as short lines: p50, p99, SM clock and how.

What the GPU's timer says of the same posts stays in the documents.
"""
import json
import sys

SHORT = ("op", "what", "before", "between", "half", "sharing", "payload", "ordering", "record", "ring",
         "doorbell", "threads", "ctas", "queues", "batch", "sm_mhz")

for path in sys.argv[1:]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        print(f"{path}: {error}")
        continue
    for result in document["results"]:
        config = result["config"]
        if config.get("timer") == "GPU timer":
            continue
        how = " ".join(str(config[key]) for key in SHORT if key in config)
        gpu = result["where"]["gpu"] or {}
        mark = {True: "", False: " INVALID", None: ""}[result["valid"]]
        if "why_none" in result:
            print(f"{result['experiment']:9}{result['system']:12}{result['metric']:15}{result['why_none']}")
            continue
        print(f"{result['experiment']:9}{result['system']:12}{result['metric']:15}"
              f"{result['t_typical']:9.3f}{result['percentile_99']:9.3f} {result['unit']:8}"
              f"{result['MsgSize']:4} {gpu.get('sm_mhz') or 0:5.0f} {how}{mark}")
