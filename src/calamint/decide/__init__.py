"""What to do next: choosing task, input and resource."""
