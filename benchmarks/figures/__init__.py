"""The experiments of the paper, figure by figure; `benchmarks/paper.py` runs them."""
