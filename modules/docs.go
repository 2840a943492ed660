package modules

import (
	"compress/gzip"
	"io"
	"slices"
	"strings"
)

// exampleTitle stands between the documentation of a function and its example.
const exampleTitle = "\n\nCLI Example:\n\n"

// Help returns the text of sys.doc: Doc, with the example below it. A function that is documented in its module's Docs
// has none before [Module.Documented].
func (d *Def) Help() string {
	if d.Example == "" {
		return d.Doc
	}
	lines := strings.ReplaceAll(d.Example, "\n", "\n    ")
	return strings.TrimRight(d.Doc, "\n") + exampleTitle + "    " + lines + "\n"
}

// Documented returns the module with the documentation that its functions have in Docs. It decompresses the whole
// text, so ask for it only to show documentation, and once for all functions of a module.
func (m *Module) Documented() *Module {
	docs := m.allDocs()
	if len(docs) == 0 {
		return m
	}
	texts := map[string]string{}
	for _, packed := range docs {
		readDocs(*packed, texts)
	}
	full := *m
	full.Docs, full.docs = nil, nil
	full.Funcs = slices.Clone(m.Funcs)
	for i := range full.Funcs {
		d := &full.Funcs[i]
		text, ok := texts[m.Called()+"."+d.Name]
		if !ok || d.Doc != "" {
			continue
		}
		doc, example, found := strings.Cut(text, exampleTitle)
		d.Doc = doc
		if found {
			d.Example = strings.ReplaceAll(strings.TrimPrefix(example, "    "), "\n    ", "\n")
		}
	}
	return &full
}

// help returns the documentation of one function, "" if the module does not have it.
func (m *Module) help(name string) string {
	d := m.Def(name)
	if d != nil && d.Doc == "" {
		d = m.Documented().Def(name)
	}
	if d == nil {
		return ""
	}
	return d.Help()
}

// allDocs returns the module's Docs, and those of the modules from which it has functions.
func (m *Module) allDocs() []*string {
	if m.Docs == nil {
		return m.docs
	}
	return append([]*string{m.Docs}, m.docs...)
}

// readDocs adds the texts of a docs.txt.gz, by the names in their headings. The first text of a name counts. A file
// that gzip cannot read adds what can be read: the tests compare every file with its docs.txt.
func readDocs(packed string, texts map[string]string) {
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return
	}
	all, _ := io.ReadAll(z)
	for section := range strings.SplitSeq("\n"+string(all), "\n# ") {
		name, text, _ := strings.Cut(section, "\n")
		if _, ok := texts[name]; !ok {
			texts[name] = strings.Trim(text, "\n")
		}
	}
}
