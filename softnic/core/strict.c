/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What strict mode's diagnostics are called and what they mean; for reports.
 */
#include "engine.h"

static const struct {
    const char *name;
    const char *text;
} diags[NIC_DIAG_COUNT] = {
    [NIC_DIAG_RECORD_HALF] = {"record_half", "the send index was written into the receive half of "
                                             "the doorbell record (bytes 0-3); it belongs into "
                                             "bytes 4-7"},
    [NIC_DIAG_RECORD_ORDER] = {"record_order", "the doorbell record holds the send index in host "
                                               "byte order; it must be big-endian"},
    [NIC_DIAG_RECORD_RANGE] = {"record_range", "the doorbell record is further ahead than the send "
                                               "ring is deep"},
    [NIC_DIAG_RECORD_STALE] = {"record_stale", "a doorbell was rung, but the doorbell record never "
                                               "moved"},
    [NIC_DIAG_UNRUNG] = {"unrung", "the doorbell record moved and the WQE was executed, but its "
                                   "doorbell never came; hardware would not have executed it"},
    [NIC_DIAG_DOORBELL_LOST] = {"doorbell_lost", "a doorbell was overwritten in a register that "
                                                 "several queue pairs share before the device saw "
                                                 "it"},
    [NIC_DIAG_DOORBELL_QPN] = {"doorbell_qpn", "a doorbell names a queue pair that does not exist "
                                               "or is bound to another UAR page"},
    [NIC_DIAG_DOORBELL_PLACE] = {"doorbell_place", "a doorbell was rung at the wrong register of "
                                                   "its UAR page: a queue pair without a doorbell "
                                                   "record has the one at 0x600, one with a record "
                                                   "those from 0x800 on"},
    [NIC_DIAG_DOORBELL_RANGE] = {"doorbell_range", "the doorbell of a queue pair without a record "
                                                   "went back, or names an index further ahead "
                                                   "than the send ring is deep"},
    [NIC_DIAG_INDEX_LEAK] = {"index_leak", "the WQE index leaked out of its 16 bits into the opmod "
                                           "byte of the control segment"},
    [NIC_DIAG_INDEX_MISMATCH] = {"index_mismatch", "the control segment's WQE index is not that of "
                                                   "its slot"},
    [NIC_DIAG_QPN_MISMATCH] = {"qpn_mismatch", "the control segment names another queue pair"},
    [NIC_DIAG_RESERVED_BITS] = {"reserved_bits", "bits that the format reserves are set"},
    [NIC_DIAG_POISON_FETCHED] = {"poison_fetched", "the device fetched a slot that had not been "
                                                   "written since it was last executed: the WQE "
                                                   "was not visible before its doorbell or record"},
    [NIC_DIAG_NO_SUCH_PEER] =
        {"no_such_peer",
         "the peer is not of this process: no queue pair here ever had the QPN that this one is "
         "connected to, and the software device serves one process alone"},
};

const char *nic_diag_name(enum nic_diag kind)
{
    return diags[kind].name;
}

const char *nic_diag_text(enum nic_diag kind)
{
    return diags[kind].text;
}
