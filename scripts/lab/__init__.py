"""What tests the instrument, or publishes its own results: simulations, fuzzing, soak, planted slowdowns, own claims."""
