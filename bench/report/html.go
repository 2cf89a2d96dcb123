package report

// HTML is the report as a page.
func (d *Document) HTML() string { return "" }
