package main

import (
	"slices"
	"strings"
	"unicode"
)

// firstOf returns the first word of a name that is in the list, or "".
func firstOf(list []string, name string) string {
	for _, word := range splitWords(name) {
		if slices.Contains(list, word) {
			return word
		}
	}
	return ""
}

// splitWords cuts a name into its words, in lower case: "newHTTPPool_v2" is
// new, http, pool, v.
func splitWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := range runes {
		if !startsWord(runes, i) {
			continue
		}
		words = appendWord(words, runes[start:i])
		start = i
	}
	return appendWord(words, runes[start:])
}

// startsWord tells whether a word begins at i: after anything that is no
// letter, at a capital after a small letter, and at the last capital of a run
// when a small letter follows.
func startsWord(runes []rune, i int) bool {
	if i == 0 || !unicode.IsLetter(runes[i]) {
		return true
	}
	before := runes[i-1]
	if !unicode.IsLetter(before) {
		return true
	}
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	return unicode.IsLower(before) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func appendWord(words []string, runes []rune) []string {
	word := strings.ToLower(strings.TrimFunc(string(runes), func(r rune) bool { return !unicode.IsLetter(r) }))
	if word == "" {
		return words
	}
	return append(words, word)
}
