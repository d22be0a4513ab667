"""What would be learnt: acquisition functions."""
