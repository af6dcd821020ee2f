"""Config entries of onnxruntime 1.31 by name."""

from __future__ import annotations

# Of SessionOptions; all are hints on how to compute, or concern providers that are not here, unless `SessionOptions`
# tells of an effect.
SESSION = frozenset({
    "ep.context_embed_mode", "ep.context_enable", "ep.context_file_path", "ep.context_model_external_initializers_file_name",
    "ep.context_node_name_prefix", "ep.cuda.fpa_intb_gemm", "ep.cuda.fpa_intb_profile_m",
    "ep.cuda.gqa_workspace_max_total_sequence_length", "ep.cuda.use_arena", "ep.dynamic.workload_type", "ep.enable_weightless",
    "ep.nnapi.partitioning_stop_ops", "ep.share_ep_contexts", "ep.stop_share_ep_contexts",
    "mlas.disable_kleidiai", "mlas.enable_gemm_fastmath_arm64_bfloat16", "mlas.kleidiai.conv_igemm_max_work",
    "mlas.nchwc_depthwise_sliding", "mlas.nchwc_pointwise_conv_max_input_channel_batch", "mlas.use_lut_gemm",
    "optimization.constant_folding_max_output_size_in_bytes", "optimization.disable_specified_optimizers",
    "optimization.enable_cast_chain_elimination", "optimization.enable_gelu_approximation",
    "optimization.enable_memory_probe_recompute_config", "optimization.memory_optimizer_config",
    "optimization.minimal_build_optimizations",
    "session.allow_released_opsets_only", "session.collect_node_memory_stats_to_file", "session.compile_only",
    "session.debug_layout_transformation", "session.disable_aot_function_inlining", "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover", "session.disable_model_compile", "session.disable_prepacking",
    "session.disable_qdq_constant_folding", "session.disable_quant_qdq", "session.dynamic_block_base",
    "session.enable_dq_matmulnbits_fusion", "session.enable_moe_expert_counting", "session.enable_moe_expert_statistics",
    "session.enable_quant_qdq_cleanup", "session.fail_on_suboptimal_compiled_model", "session.force_spinning_stop",
    "session.function_expansion_byte_limit", "session.function_expansion_node_limit", "session.gqa_value_layout",
    "session.graph_optimizations_loop_level", "session.inter_op.allow_spinning", "session.inter_op.spin_backoff_max",
    "session.inter_op.spin_duration_us", "session.intra_op.allow_spinning", "session.intra_op.spin_backoff_max",
    "session.intra_op.spin_duration_us", "session.intra_op_thread_affinities", "session.layer_assignment_settings",
    "session.load_model_format", "session.max_shape_override", "session.model_external_initializers_file_folder_path",
    "session.moe_expert_counter_alpha", "session.moe_expert_counter_beta", "session.moe_expert_counter_state_file",
    "session.name_based_layer_assignment", "session.node_partition_config_file",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes", "session.prepack.enable_parallel",
    "session.qdq_matmulnbits_accuracy_level", "session.qdq_matmulnbits_block_size", "session.qdqisint8allowed",
    "session.record_ep_graph_assignment_info", "session.resource_cuda_partitioning_settings",
    "session.save_external_prepacked_constant_initializers", "session.save_model_format", "session.set_denormal_as_zero",
    "session.strict_shape_type_inference", "session.strict_workspace_verification",
    "session.use_device_allocator_for_initializers", "session.use_env_allocators",
    "session.use_external_initializer_file_buffers_directly", "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers", "session.x64quantprecision",
})  # fmt: skip

RUN = frozenset({
    "disable_synchronize_execution_providers", "gpu_graph_id", "memory.enable_memory_arena_shrinkage",
    "qnn.htp_perf_mode", "qnn.htp_perf_mode_post_run", "qnn.lora_config", "qnn.rpc_control_latency",
})  # fmt: skip
