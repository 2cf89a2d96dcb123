//go:build poison

package listener

const poisoning = true
