package mcp

import (
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// The types of this file are the members of a contract's file. The loader builds the connector's
// data from them.

type fileContract struct {
	At       yamlfile.Place
	Draft    yamlfile.Text              `yaml:"draft"`
	Contract int                        `yaml:"contract"`
	Name     yamlfile.Text              `yaml:"name"`
	Server   yamlfile.Text              `yaml:"server"`
	Serial   bool                       `yaml:"serial"`
	Reads    []yamlfile.Text            `yaml:"reads"`
	Digests  map[string][]yamlfile.Text `yaml:"digests"`
	Kinds    map[string]*fileKind       `yaml:"kinds"`
}

type fileKind struct {
	At      yamlfile.Place
	Writes  map[string]*fileWrite    `yaml:"writes"`
	Reads   []*fileRead              `yaml:"reads"`
	Record  *fileRecord              `yaml:"record"`
	Undo    map[string]yamlfile.Text `yaml:"undo"`
	Summary *declared.Summary        `yaml:"summary"`
	Profile declared.Profile         `yaml:"profile"`
}

type fileWrite struct {
	At          yamlfile.Place
	Tool        yamlfile.Text         `yaml:"tool"`
	Each        yamlfile.Text         `yaml:"each"`
	Within      yamlfile.Text         `yaml:"within"`
	Key         map[string]fileSource `yaml:"key"`
	Expect      map[string]fileSource `yaml:"expect"`
	Require     map[string]fileSource `yaml:"require"`
	Ref         yamlfile.Text         `yaml:"ref"`
	Stamp       yamlfile.Text         `yaml:"stamp"`
	Idempotency *fileIdempotency      `yaml:"idempotency"`
	Idempotent  bool                  `yaml:"idempotent"`
	Made        yamlfile.Text         `yaml:"made"`
	Refused     []yamlfile.Text       `yaml:"refused"`
	Conflict    []yamlfile.Text       `yaml:"conflict"`
	Throttled   []yamlfile.Text       `yaml:"throttled"`
	Passes      *filePasses           `yaml:"passes"`
	NotChecked  []yamlfile.Text       `yaml:"not_checked"`
}

type fileIdempotency struct {
	At       yamlfile.Place
	Argument yamlfile.Text `yaml:"argument"`
	Window   yamlfile.Span `yaml:"window"`
}

// filePasses is an argument that turns a write into a read.
type filePasses struct {
	At       yamlfile.Place
	Argument yamlfile.Text `yaml:"argument"`
	Equals   yamlfile.Node `yaml:"equals"`
}

// fileSource is where a value of an intent comes from: a path into the arguments, or another
// source.
type fileSource struct {
	At      yamlfile.Place
	Path    yamlfile.Text `yaml:",short"`
	Outer   yamlfile.Text `yaml:"outer"`
	Value   yamlfile.Node `yaml:"value"`
	Before  yamlfile.Text `yaml:"before"`
	Replace *fileReplace  `yaml:"replace"`
}

// fileReplace is a text of the record before with pieces of it replaced.
type fileReplace struct {
	At    yamlfile.Place
	Each  yamlfile.Text `yaml:"each"`
	Old   yamlfile.Text `yaml:"old"`
	New   yamlfile.Text `yaml:"new"`
	Lines yamlfile.Text `yaml:"lines"`
}

type fileRead struct {
	At        yamlfile.Place
	Name      yamlfile.Text            `yaml:"name"`
	By        yamlfile.Text            `yaml:"by"`
	Tool      yamlfile.Text            `yaml:"tool"`
	Arguments map[string]yamlfile.Node `yaml:"arguments"`
	Answer    yamlfile.Text            `yaml:"answer"`
	Record    yamlfile.Text            `yaml:"record"`
	Records   yamlfile.Text            `yaml:"records"`
	Within    yamlfile.Text            `yaml:"within"`
	Absent    []yamlfile.Text          `yaml:"absent"`
	Empty     []yamlfile.Text          `yaml:"empty"`
	Limit     int                      `yaml:"limit"`
	Newest    int                      `yaml:"newest"`
	Strength  yamlfile.Text            `yaml:"strength"`
	As        yamlfile.Text            `yaml:"as"`
}

type fileRecord struct {
	At      yamlfile.Place
	Ref     yamlfile.Text        `yaml:"ref"`
	URL     yamlfile.Text        `yaml:"url"`
	Version yamlfile.Text        `yaml:"version"`
	Stamp   *fileField           `yaml:"stamp"`
	Fields  map[string]fileField `yaml:"fields"`
}

// fileField is a path, or a path and what to do with what it selects.
type fileField struct {
	At    yamlfile.Place
	Path  yamlfile.Text `yaml:"path,short"`
	Outer yamlfile.Text `yaml:"outer"`
	Key   yamlfile.Text `yaml:"key"`
	Match yamlfile.Text `yaml:"match"`
}
