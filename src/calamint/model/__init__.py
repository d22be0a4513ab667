"""What is believed: Gaussian processes over every function."""
