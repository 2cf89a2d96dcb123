// Package file is a topology.Source over a file of EndpointSlices, in YAML or
// JSON as kubectl prints them: for trying things out, for tests, and for
// clusters where no permission to list slices is given.
//
// The file is read again when it changes. It should be replaced by renaming a
// new one over it; the symlink swap of a mounted ConfigMap is that already. A
// file that cannot be read as a whole changes nothing: what the last good one
// said stays in force.
//
// Goroutines: [Source.Run] is the caller's; while it runs, the fsnotify library
// runs one of its own, which has ended when Run returns.
package file
