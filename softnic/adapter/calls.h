/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs calls that the adapter serves, one function each: what ioctl.c dispatches to. All want
 * soft_lock and an active context, unless they say otherwise, and return 0 or a negative errno; a
 * call that fails has created nothing.
 */
#ifndef SOFTNIC_ADAPTER_CALLS_H
#define SOFTNIC_ADAPTER_CALLS_H

struct soft_call;

/* device.c */
int soft_get_context(struct soft_call *call); /* makes the context active */
int soft_query_device(struct soft_call *call);
int soft_query_device_ex(struct soft_call *call);
int soft_query_port(struct soft_call *call);
int soft_query_port_write(struct soft_call *call);
int soft_query_mlx5_port(struct soft_call *call);
int soft_query_gid_table(struct soft_call *call);
int soft_query_gid_entry(struct soft_call *call);

/* channels.c */
int soft_alloc_async(struct soft_call *call);
int soft_create_comp_channel(struct soft_call *call);

/* memory.c */
int soft_alloc_pd(struct soft_call *call);
int soft_dealloc_pd(struct soft_call *call);
int soft_reg_mr(struct soft_call *call);
int soft_dereg_mr(struct soft_call *call);
int soft_destroy_pd(struct soft_call *call);
int soft_destroy_mr(struct soft_call *call);

/* cq.c */
int soft_create_cq(struct soft_call *call);
int soft_modify_cq(struct soft_call *call);
int soft_destroy_cq(struct soft_call *call);

/* qp.c */
int soft_create_qp(struct soft_call *call);
int soft_destroy_qp(struct soft_call *call);

/* qp_modify.c */
int soft_modify_qp(struct soft_call *call);
int soft_query_qp(struct soft_call *call);

/* devx.c */
int soft_devx_general(struct soft_call *call);
int soft_devx_query_eqn(struct soft_call *call);
int soft_devx_create(struct soft_call *call);
int soft_devx_modify(struct soft_call *call);
int soft_devx_query(struct soft_call *call);
int soft_devx_destroy_call(struct soft_call *call);

/* devx_memory.c */
int soft_umem_reg(struct soft_call *call);
int soft_umem_dereg(struct soft_call *call);
int soft_uar_alloc(struct soft_call *call);
int soft_uar_free(struct soft_call *call);

#endif
