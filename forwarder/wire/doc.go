// Package wire reads and writes DNS messages as bytes (RFC 1035).
//
// It has three kinds of things. Views: Query and Reply borrow the bytes they
// were parsed from and are valid only while those bytes are unchanged.
// Builders: every Append function adds to the caller's buffer and returns it,
// as the built-in append does. Patches: Echo, AgeTTLs and Fit change a message
// in place.
//
// Nothing here allocates, waits, logs or knows the time. The work for any
// input is bounded by its length and by MaxExpansion, and no count found in a
// header ever sizes anything: the peer is not trusted.
package wire
