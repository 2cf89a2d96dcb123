package main

import "context"

func simulateCommand(_ context.Context, _ output, _ []string) error { return nil }
