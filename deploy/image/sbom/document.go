package main

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// document is what we use of SPDX 2.3.
type document struct {
	SPDXVersion   string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []entry        `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// entry is one module.
type entry struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Location  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Checksums []checksum `json:"checksums,omitempty"`
	Refs      []ref      `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type ref struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// describe is the document of a binary of that version, with that SHA-256.
func describe(info *debug.BuildInfo, version, sum string, at time.Time) document {
	main := module("main", info.Main.Path, version)
	main.Checksums = []checksum{{"SHA256", sum}} // of the binary, which is what is delivered
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:          fmt.Sprintf("%s %s", info.Path, version),
		Namespace:     "https://github.com/nodens-dns/nodens/sbom/" + sum,
		Creation:      creation{at.UTC().Format(time.RFC3339), []string{"Tool: nodens-sbom"}},
		Packages:      []entry{main, module("go", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", main.ID}, {main.ID, "CONTAINS", "SPDXRef-go"}},
	}
	for i, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		one := module(fmt.Sprint("module-", i+1), dep.Path, dep.Version)
		d.Packages = append(d.Packages, one)
		d.Relationships = append(d.Relationships, relationship{main.ID, "CONTAINS", one.ID})
	}
	return d
}

func module(id, path, version string) entry {
	return entry{
		ID: "SPDXRef-" + id, Name: path, Version: version, Location: "NOASSERTION",
		Refs: []ref{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
