package file

import "bytes"

// documents splits a YAML stream at its markers. A "---" or "..." at the start
// of a line cannot be anything else in YAML, and JSON has none.
func documents(data []byte) [][]byte {
	var docs [][]byte
	var doc []byte
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		rest, marker := cutMarker(line)
		if marker {
			docs = append(docs, doc)
			doc = nil
		}
		doc = append(doc, rest...)
	}
	return nonEmpty(append(docs, doc))
}

// cutMarker reports whether line starts with a marker, and returns what follows
// it, else the line.
func cutMarker(line []byte) ([]byte, bool) {
	for _, marker := range []string{"---", "..."} {
		rest, ok := bytes.CutPrefix(line, []byte(marker))
		if ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			return rest, true
		}
	}
	return line, false
}

// nonEmpty drops documents of white space only, so that the numbers in messages
// are those that a reader counts.
func nonEmpty(docs [][]byte) [][]byte {
	var kept [][]byte
	for _, doc := range docs {
		if len(bytes.TrimSpace(doc)) > 0 {
			kept = append(kept, doc)
		}
	}
	return kept
}
