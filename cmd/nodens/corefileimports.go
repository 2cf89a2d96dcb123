package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// What the imports of a Corefile may come to. The parser puts each in its place by
// copying all that is behind it.
const (
	maxImports       = 2000
	maxImportDepth   = 20
	maxImportedWords = 200_000
)

// importReader follows the imports of a Corefile before it is parsed: the parser
// follows them for ever where a file leads back to itself.
type importReader struct {
	c        *corefile
	files    map[string][]caddyfile.Token
	snippets map[string][]caddyfile.Token
	chain    []string // the names of what is being read, outermost first
	nesting  int      // of braces
	comma    bool     // the last word says that another key follows
	imports  int
	words    int
}

// followImports reports whether all imports come to an end.
func (c *corefile) followImports(data []byte) bool {
	whole, err := filepath.Abs(c.options.Path)
	if err != nil {
		return true // the parser says why
	}
	words := wordsOf("", data)
	c.findUnset(words)
	r := importReader{c: c, files: map[string][]caddyfile.Token{whole: words}, snippets: map[string][]caddyfile.Token{}}
	return r.follow(whole, words)
}

func wordsOf(file string, data []byte) (words []caddyfile.Token) {
	d := caddyfile.NewDispenser(file, bytes.NewReader(data))
	for d.Next() {
		words = append(words, caddyfile.Token{File: file, Line: d.Line(), Text: d.Val()})
	}
	return words
}

// follow reads the words of a file or snippet with this name.
func (r *importReader) follow(name string, words []caddyfile.Token) bool {
	r.chain = append(r.chain, name)
	defer func() { r.chain = r.chain[:len(r.chain)-1] }()
	if r.words += len(words); r.words > maxImportedWords {
		return r.wrong(words[0], fmt.Sprintf("the imports come to more than %d words", maxImportedWords), "import less")
	}
	for i := 0; i < len(words); i++ {
		afterComma := r.comma
		r.comma = strings.HasSuffix(words[i].Text, ",")
		switch text := words[i].Text; {
		case text == "{":
			r.nesting++
		case text == "}":
			r.nesting--
		case !beginsStatement(words, i):
		case text == "import" && i+1 < len(words):
			if !r.followOne(words[i+1]) {
				return false
			}
		case r.nesting == 0 && snippetName(words[i:]) != "":
			body := words[i+2:]
			length := snippetLength(body)
			r.snippets[snippetName(words[i:])] = body[:length]
			i += 2 + length
		case r.nesting == 0 && !afterComma:
			r.c.starts = append(r.c.starts, words[i])
		}
	}
	return true
}

// beginsStatement says that a word stands where a directive may. A quoted word may have
// several lines.
func beginsStatement(words []caddyfile.Token, at int) bool {
	if at == 0 {
		return true
	}
	before := words[at-1]
	return before.Text == "{" || before.Text == "}" || before.Line+strings.Count(before.Text, "\n") < words[at].Line
}

// snippetName is the name of the snippet that begins here, or "".
func snippetName(words []caddyfile.Token) string {
	bare, opened := strings.CutPrefix(words[0].Text, "(")
	bare, closed := strings.CutSuffix(bare, ")")
	if !opened || !closed || len(words) < 2 || words[1].Text != "{" {
		return ""
	}
	return bare
}

// snippetLength is how many words there are before the brace that closes a snippet.
func snippetLength(body []caddyfile.Token) int {
	open := 1
	for i, t := range body {
		switch t.Text {
		case "{":
			open++
		case "}":
			if open--; open == 0 {
				return i
			}
		}
	}
	return len(body)
}

// followOne reads what one import names. What is not there, the parser reports.
func (r *importReader) followOne(named caddyfile.Token) bool {
	if r.imports++; r.imports > maxImports {
		return r.wrong(named, fmt.Sprintf("there are more than %d imports", maxImports), "import less")
	}
	if len(r.chain) > maxImportDepth {
		return r.wrong(named, fmt.Sprintf("imports lead to imports, more than %d deep", maxImportDepth), "import what is needed directly")
	}
	name := withVariables(named.Text)
	if body, ok := r.snippets[name]; ok {
		return r.followNamed(named, "("+name+")", body)
	}
	pattern := name
	if !filepath.IsAbs(pattern) {
		file, err := filepath.Abs(r.fileOf(named))
		if err != nil {
			return true
		}
		pattern = filepath.Join(filepath.Dir(file), pattern)
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return true
	}
	for _, path := range found {
		words, ok := r.files[path]
		if !ok {
			data, err := readFile(path)
			if err != nil {
				return r.wrong(named, fmt.Sprintf("import names %s, which cannot be read: %v", r.c.shown(path), err), "name a file")
			}
			words = wordsOf(path, data)
			r.files[path] = words
			r.c.findUnset(words)
		}
		if !r.followNamed(named, path, words) {
			return false
		}
	}
	return true
}

// followNamed reads a file or snippet unless it is one that is being read.
func (r *importReader) followNamed(named caddyfile.Token, name string, words []caddyfile.Token) bool {
	if at := slices.Index(r.chain, name); at >= 0 {
		var way []string
		for _, one := range append(slices.Clone(r.chain[at:]), name) {
			way = append(way, r.c.shown(one))
		}
		return r.wrong(named, "import leads back to itself: "+cut(strings.Join(way, " imports ")), "remove one of these imports")
	}
	return r.follow(name, words)
}

func (r *importReader) fileOf(t caddyfile.Token) string {
	if t.File == "" {
		return r.c.options.Path
	}
	return t.File
}

func (r *importReader) wrong(at caddyfile.Token, what, do string) bool {
	r.c.addIn(r.c.shown(at.File), at.Line, what, do)
	return false
}

// withVariables is a word as the parser reads it, which looks at the variables of this
// process.
func withVariables(text string) string {
	for _, variable := range []*regexp.Regexp{regexp.MustCompile(`\{%(.+?)%\}`), variablePattern()} {
		text = variable.ReplaceAllStringFunc(text, func(found string) string {
			return os.Getenv(variable.FindStringSubmatch(found)[1])
		})
	}
	return text
}

func variablePattern() *regexp.Regexp { return regexp.MustCompile(`\{\$(.+?)\}`) }
