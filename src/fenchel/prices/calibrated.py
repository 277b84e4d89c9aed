"""What arithmetic costs, in nanoseconds: measured and written by ``benchmarks/calibrate.py``.

Processor: AMD EPYC, one thread. Only the ratios of the numbers matter.
"""

from __future__ import annotations

MEASURED: dict[str, float] = {
    "syrk64": 0.0465,  # per multiply-add of the n k^2 / 2 of X'X, float64
    "syrk32": 0.0259,  # the same, float32
    "gemv": 0.377,  # per entry of X in X'x, float64, X in C order and larger than the cache
    "gemv32": 0.22,  # the same, float32
    "copy": 3.48,  # per entry of columns gathered from a matrix in C order into a compact (k, n) array
    "cast": 0.251,  # per entry, float64 to float32
    "potrf": 0.108,  # per multiply-add of the a^3 / 6 of a Cholesky factor, float64
    "descent": 0.292,  # per entry of the Gram matrix that a coordinate update reads (k of them), float64
    "csr_pass": 0.978,  # per stored entry of one product X'x or Xw, mean of the two, CSR
    "csc_pass": 0.922,  # the same, CSC
    "csr_gram": 1.36,  # per multiply-add of the sum over the rows of (entries of the row)^2 / 2, CSR
    "loss": 4,  # per row: value, slope and curvature of the logistic loss
    "call": 561,  # one call of numpy on a tiny array from Python
    # carried over: the script does not measure these
    "loss_closed": 20.0,
    "loss_iterated": 150.0,
    "visit_sparse_row": 15.0,
    "visit_sparse_entry": 2.2,
    "visit_dense_row": 30.0,
    "visit_single_entry": 0.29,
    "visit_double_entry": 0.48,
    "penalty_call": 1000.0,
    "penalty_coordinate": 2.5,
    "penalty_entry": 1.5,
    "penalty_slot": 1.5,
    "epoch_call": 50000.0,
    "certificate_call": 700000.0,
    "certificate_sparse_entry": 2.0,
    "certificate_dense_entry": 0.35,
    "certificate_visit": 45.0,
    "certificate_coordinate": 60.0,
    "certificate_free_pair": 1.0,
    "certificate_free_visit": 30.0,
    "newton_call": 500000.0,
    "multipliers_call": 500000.0,
    "multipliers_sparse_pair": 1.5,
    "multipliers_dense_pair": 0.06,
    "multipliers_factor": 0.03,
    "multipliers_pair": 6.0,
    "multipliers_sparse_entry": 2.0,
    "multipliers_dense_entry": 0.7,
    "multipliers_row": 300.0,
    "accelerated_call": 300000.0,
    "accelerated_sparse_entry": 2.0,
    "accelerated_single_entry": 0.25,
    "accelerated_double_entry": 0.4,
    "accelerated_visit": 60.0,
    "prox_coordinate": 8.0,
    "prox_entry": 4.0,
    "prox_grid_coordinate": 3.0,
    "prox_chain_coordinate": 0.5,
    "face_call": 1000000.0,
    "face_step": 500000.0,
    "face_coordinate": 200.0,
    "face_visit": 300.0,
    "face_pair": 5.0,
    "face_copied_entry": 4.0,
    "face_product_call": 50000.0,
    "face_kept_entry": 0.8,
    "face_sparse_entry": 4.0,
    "face_dense_entry": 0.4,
    "face_product_coordinate": 5.0,
    "face_scattered_pair": 5.0,
    "face_double_pair": 0.02,
    "face_single_pair": 0.01,
    "face_plain_entry": 0.5,
    "face_double_entry": 2.0,
    "face_single_entry": 3.0,
    "face_factor": 0.02,
    "face_solve_pair": 2.0,
    "face_dual_call": 100000.0,
    "face_dual_coordinate": 25.0,
    "gram_solve_entry": 600.0,
    "gram_solve_feature": 3000.0,
}
