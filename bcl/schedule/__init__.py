"""Many runs: processes, groups on a GPU, Ray."""
