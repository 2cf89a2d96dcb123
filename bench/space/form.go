package space

import "os"

// Full tells whether rows of tests are as long as they should be: NODENS_FULL is set.
func Full() bool { return os.Getenv("NODENS_FULL") != "" }

// Form is one of two values, by the form of the run.
func Form[T any](short, long T) T {
	if Full() {
		return long
	}
	return short
}
