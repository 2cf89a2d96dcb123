package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/play"
)

// Document is what is kept of a measurement. Exactly one of Play and Compare is
// set.
type Document struct {
	// Version is that of this format.
	Version int `json:"version"`
	// Command is how it was measured, to do it again.
	Command string           `json:"command"`
	Machine machine.Machine  `json:"machine"`
	Play    *play.Result     `json:"play,omitempty"`
	Compare *compare.Outcome `json:"compare,omitempty"`
}

const version = 1

// OfPlay is the document of one play.
func OfPlay(command string, m machine.Machine, r *play.Result) *Document {
	return &Document{Version: version, Command: command, Machine: m, Play: r}
}

// OfCompare is the document of a comparison.
func OfCompare(command string, o *compare.Outcome) *Document {
	return &Document{Version: version, Command: command, Machine: o.Machine, Compare: o}
}

// Read reads a document from its JSON file.
func Read(path string) (*Document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("report: %s is not the JSON of a report: %w", path, err)
	}
	switch {
	case d.Version != version:
		return nil, fmt.Errorf("report: %s has format %d, this program reads %d", path, d.Version, version)
	case !d.whole():
		return nil, fmt.Errorf("report: %s holds no whole measurement: write it again with run or compare", path)
	}
	return &d, nil
}

// whole tells whether everything is there that a report shows.
func (d *Document) whole() bool {
	if d.Play != nil {
		return d.Compare == nil && d.Play.Load != nil
	}
	return d.Compare != nil && len(d.Compare.Cells) > 0 && !slices.ContainsFunc(d.Compare.Cells, func(c compare.Cell) bool {
		return c.Result == nil || c.Result.Load == nil
	})
}

// Prepare makes the folder of a report if need be, and tries to write there, so
// that a long measurement does not end without a place to keep it.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	f, err := os.CreateTemp(dir, ".report-")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Save writes report.json, report.html and report.txt into a folder, which is
// made if need be.
func (d *Document) Save(dir string) error {
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	write := func(name string, data []byte) error {
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}
	return errors.Join(
		write("report.json", append(data, '\n')),
		write("report.html", []byte(d.HTML())),
		write("report.txt", []byte(d.Text())),
	)
}
