package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// shortDuration is d without the zero parts that String adds: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shortBytes is n in the largest unit that divides it, as the configuration
// file would say it.
func shortBytes(n int64) string {
	for i, suffix := range []string{"Gi", "Mi", "Ki"} {
		unit := int64(1) << (30 - 10*i)
		if n >= unit && n%unit == 0 {
			return fmt.Sprintf("%d%s", n/unit, suffix)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// cut is text that is short enough for a message: its first 80 characters, if
// there are more.
func cut(text string) string {
	const most = 80
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
