package serializers

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Property lists have their own code here because howett.net/plist (264 KiB) reads dictionaries as Go maps, which
// sorts their keys. plistlib, and so file.serialize with sort_keys False, keeps their order.

const plistHead = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`

// writePlist formats a property list: as XML, or in the binary format if the option fmt is FMT_BINARY.
func writePlist(v any, opts *pyobj.Dict) (any, error) {
	if err := refuse("plist", opts, "sort_keys", "skipkeys", "fmt"); err != nil {
		return nil, err
	}
	w := plistWriter{sort: !opts.Has("sort_keys") || pyobj.Truth(opts.Value("sort_keys")), skip: pyobj.Truth(opts.Value("skipkeys"))}
	if opts.Value("fmt") == "FMT_BINARY" {
		return writeBinaryPlist(v, w)
	}
	w.b.WriteString(plistHead)
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	w.b.WriteString("</plist>\n")
	return w.b.Bytes(), nil
}

type plistWriter struct {
	b          bytes.Buffer
	sort, skip bool
}

func (w *plistWriter) line(level int, text string) {
	for range level {
		w.b.WriteByte('\t')
	}
	w.b.WriteString(text)
	w.b.WriteByte('\n')
}

func (w *plistWriter) element(level int, name, text string) error {
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			return errors.New("strings can't contain control characters; use bytes instead")
		}
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	w.line(level, "<"+name+">"+text+"</"+name+">")
	return nil
}

func (w *plistWriter) value(v any, level int) error {
	if level > maxNesting {
		return errors.New("maximum recursion depth exceeded")
	}
	switch v := v.(type) {
	case string:
		return w.element(level, "string", v)
	case pyobj.Markup:
		return w.element(level, "string", string(v))
	case bool:
		w.line(level, "<"+strconv.FormatBool(v)+"/>")
	case int64, int, uint64:
		return w.element(level, "integer", pyobj.Str(v))
	case *big.Int:
		if !v.IsUint64() {
			return errors.New(v.String())
		}
		return w.element(level, "integer", v.String())
	case float64:
		return w.element(level, "real", pyobj.Repr(v))
	case []byte:
		w.data(v, level)
	case *pyobj.Dict:
		return w.dict(v, level)
	case *pyobj.List:
		return w.array(v.Items, level)
	case pyobj.Tuple:
		return w.array(v, level)
	default:
		return fmt.Errorf("unsupported type: <class '%s'>", pyobj.TypeName(v))
	}
	return nil
}

// data writes bytes as lines of base64.
func (w *plistWriter) data(b []byte, level int) {
	w.line(level, "<data>")
	width := max(16, 76-8*level) / 4 * 3
	for piece := range slices.Chunk(b, width) {
		w.line(level, base64.StdEncoding.EncodeToString(piece))
	}
	w.line(level, "</data>")
}

func (w *plistWriter) array(items []any, level int) error {
	if len(items) == 0 {
		w.line(level, "<array/>")
		return nil
	}
	w.line(level, "<array>")
	for _, x := range items {
		if err := w.value(x, level+1); err != nil {
			return err
		}
	}
	w.line(level, "</array>")
	return nil
}

func (w *plistWriter) dict(d *pyobj.Dict, level int) error {
	if d.Len() == 0 {
		w.line(level, "<dict/>")
		return nil
	}
	w.line(level, "<dict>")
	keys, err := w.keys(d)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := w.element(level+1, "key", k); err != nil {
			return err
		}
		if err := w.value(d.Value(k), level+1); err != nil {
			return err
		}
	}
	w.line(level, "</dict>")
	return nil
}

// keys returns the keys of a dictionary in the order of the output.
func (w *plistWriter) keys(d *pyobj.Dict) ([]string, error) {
	var keys []string
	for k := range d.All() {
		s, ok := k.(string)
		if !ok && !w.skip {
			return nil, errors.New("keys must be strings")
		}
		if ok {
			keys = append(keys, s)
		}
	}
	if w.sort {
		slices.Sort(keys)
	}
	return keys, nil
}

// readPlist parses a property list in XML or in the binary format.
func readPlist(b []byte) (any, error) {
	if bytes.HasPrefix(b, []byte(bplistHead)) {
		return readBinaryPlist(b)
	}
	r := plistReader{xml.NewDecoder(bytes.NewReader(b))}
	var (
		value any
		found bool
	)
	for {
		t, err := r.Token()
		switch {
		case errors.Is(err, io.EOF) && found:
			return value, nil
		case err != nil:
			return nil, errors.New("Invalid file")
		}
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local == "plist" {
			continue
		}
		if value, err = r.value(start, 0); err != nil {
			return nil, err
		}
		found = true
	}
}

type plistReader struct{ *xml.Decoder }

// value parses the element that begins with start.
func (r plistReader) value(start xml.StartElement, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errors.New("maximum recursion depth exceeded")
	}
	switch start.Name.Local {
	case "dict":
		d := &pyobj.Dict{}
		key, have := "", false
		err := r.children(func(child xml.StartElement) error {
			if child.Name.Local == "key" {
				if have {
					return errors.New("unexpected key")
				}
				text, err := r.text()
				key, have = text, true
				return err
			}
			if !have {
				return errors.New("unexpected element")
			}
			v, err := r.value(child, depth+1)
			if err != nil {
				return err
			}
			have = false
			return d.Set(key, v)
		})
		if err == nil && have {
			err = fmt.Errorf("missing value for key '%s'", key)
		}
		return d, err
	case "array":
		l := &pyobj.List{}
		err := r.children(func(child xml.StartElement) error {
			v, err := r.value(child, depth+1)
			l.Items = append(l.Items, v)
			return err
		})
		return l, err
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	switch start.Name.Local {
	case "true", "false":
		return start.Name.Local == "true", nil
	case "string", "key":
		return text, nil
	case "integer":
		n, ok := new(big.Int).SetString(strings.TrimSpace(text), 0)
		if !ok {
			return nil, fmt.Errorf("invalid literal for int() with base 10: %s", pyobj.Repr(text))
		}
		if n.IsInt64() {
			return n.Int64(), nil
		}
		return n, nil
	case "real":
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fmt.Errorf("could not convert string to float: %s", pyobj.Repr(text))
		}
		return f, nil
	case "data":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, errors.New("Incorrect padding")
		}
		return b, nil
	}
	return nil, fmt.Errorf("cannot read the property list: there are no values of %s", start.Name.Local)
}

// children calls f for each child of the current element.
func (r plistReader) children(f func(xml.StartElement) error) error {
	for {
		t, err := r.Token()
		if err != nil {
			return errors.New("Invalid file")
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := f(t); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// text returns the text of the current element.
func (r plistReader) text() (string, error) {
	var b strings.Builder
	for {
		t, err := r.Token()
		if err != nil {
			return "", errors.New("Invalid file")
		}
		switch t := t.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			return "", errors.New("unexpected element")
		case xml.EndElement:
			return b.String(), nil
		}
	}
}
