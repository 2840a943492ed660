// Package pycodec implements Python's text encodings, with Python's names and errors: str.encode and bytes.decode for
// UTF-8, UTF-16, UTF-32, ASCII, Latin-1 and its two common variants. Any other name is an unknown encoding.
package pycodec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules"
)

// codec describes a text encoding.
type codec struct {
	name string
	// unit is the size of a UTF code unit in bytes, or 0 for an encoding with one byte per character.
	unit int
	big  bool
	// mark means that encoded text begins with a byte order mark.
	mark bool
	// limit is the end of the code points that are encoded as the byte of the same value, unless high replaces the byte.
	limit rune
	// high holds the characters of the bytes from low on that differ from Latin-1.
	low  int
	high string
}

// codecOf returns the encoding for one of its names.
func codecOf(name string) (codec, error) {
	switch n := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name)); n {
	case "utf-8", "utf8", "u8", "utf", "cp65001":
		return codec{name: "utf-8", unit: 1}, nil
	case "utf-8-sig":
		return codec{name: "utf-8", unit: 1, mark: true}, nil
	case "utf-16", "utf16", "u16":
		return codec{name: "utf-16", unit: 2, mark: true}, nil
	case "utf-16-le", "utf-16le":
		return codec{name: "utf-16-le", unit: 2}, nil
	case "utf-16-be", "utf-16be":
		return codec{name: "utf-16-be", unit: 2, big: true}, nil
	case "utf-32", "utf32", "u32":
		return codec{name: "utf-32", unit: 4, mark: true}, nil
	case "utf-32-le", "utf-32le":
		return codec{name: "utf-32-le", unit: 4}, nil
	case "utf-32-be", "utf-32be":
		return codec{name: "utf-32-be", unit: 4, big: true}, nil
	case "ascii", "us-ascii", "646":
		return codec{name: "ascii", limit: 0x80}, nil
	case "latin-1", "latin1", "iso-8859-1", "iso8859-1", "l1", "latin", "8859", "cp819":
		return codec{name: "latin-1", limit: 0x100}, nil
	case "cp1252", "windows-1252", "1252":
		return codec{name: "charmap", limit: 0x100, low: 0x80,
			high: "€\x00‚ƒ„…†‡ˆ‰Š‹Œ\x00Ž\x00\x00‘’“”•–—˜™š›œ\x00žŸ"}, nil
	case "iso-8859-15", "iso8859-15", "latin-9", "latin9", "l9":
		return codec{name: "charmap", limit: 0x100, low: 0xa4, high: "€¥Š§š©ª«¬\u00ad®¯°±²³Žµ¶·ž¹º»ŒœŸ"}, nil
	}
	return codec{}, &modules.PythonError{Type: "LookupError", Msg: "unknown encoding: " + name}
}

// Encode implements str.encode. errors is "strict", "ignore", "replace", "backslashreplace" or "xmlcharrefreplace".
func Encode(s, encoding, errors string) ([]byte, error) {
	c, err := codecOf(encoding)
	if err != nil {
		return nil, err
	}
	var order binary.AppendByteOrder = binary.LittleEndian
	if c.big {
		order = binary.BigEndian
	}
	var out []byte
	if c.mark {
		s = "\ufeff" + s
	}
	if c.unit == 1 {
		return []byte(s), nil
	}
	high := []rune(c.high)
	at := 0
	for _, r := range s {
		switch {
		case c.unit == 4:
			out = order.AppendUint32(out, uint32(r))
		case c.unit == 2:
			for _, u := range utf16.AppendRune(nil, r) {
				out = order.AppendUint16(out, u)
			}
		default:
			b, ok := c.byteOf(r, high)
			if ok {
				out = append(out, b)
				break
			}
			text, err := c.unencodable(r, at, errors)
			if err != nil {
				return nil, err
			}
			out = append(out, text...)
		}
		at++
	}
	return out, nil
}

// byteOf returns the byte that encodes a character.
func (c codec) byteOf(r rune, high []rune) (byte, bool) {
	if i := slices.Index(high, r); i >= 0 && r != 0 {
		return byte(c.low + i), true
	}
	if r >= c.limit || int(r) >= c.low && int(r) < c.low+len(high) {
		return 0, false
	}
	return byte(r), true
}

func (c codec) unencodable(r rune, at int, errors string) (string, error) {
	switch errors {
	case "ignore":
		return "", nil
	case "replace":
		return "?", nil
	case "xmlcharrefreplace":
		return fmt.Sprintf("&#%d;", r), nil
	case "backslashreplace":
		return escaped(r), nil
	case "", "strict":
	default:
		return "", &modules.PythonError{Type: "LookupError", Msg: fmt.Sprintf("unknown error handler name '%s'", errors)}
	}
	why := fmt.Sprintf("ordinal not in range(%d)", c.limit)
	if c.name == "charmap" {
		why = "character maps to <undefined>"
	}
	return "", &modules.PythonError{Type: "UnicodeEncodeError", Msg: fmt.Sprintf(
		"'%s' codec can't encode character '%s' in position %d: %s", c.name, escaped(r), at, why)}
}

func escaped(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Decode implements bytes.decode, strict.
func Decode(b []byte, encoding string) (string, error) {
	c, err := codecOf(encoding)
	if err != nil {
		return "", err
	}
	switch c.unit {
	case 1:
		if c.mark {
			b = []byte(strings.TrimPrefix(string(b), "\ufeff"))
		}
		return UTF8(b)
	case 2, 4:
		return c.decodeWide(b)
	}
	high := []rune(c.high)
	var s strings.Builder
	for i, x := range b {
		r := rune(x)
		if k := int(x) - c.low; k >= 0 && k < len(high) {
			r = high[k]
		}
		if r >= c.limit && c.high == "" || r == 0 && x != 0 {
			why := "ordinal not in range(128)"
			if c.high != "" {
				why = "character maps to <undefined>"
			}
			return "", &modules.PythonError{Type: "UnicodeDecodeError", Msg: fmt.Sprintf("'%s' codec can't decode byte 0x%02x in position %d: %s", c.name, x, i, why)}
		}
		s.WriteRune(r)
	}
	return s.String(), nil
}

func (c codec) decodeWide(b []byte) (string, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if c.big {
		order = binary.BigEndian
	}
	if c.mark && len(b) >= c.unit {
		for _, o := range [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			if c.unit == 2 && o.Uint16(b) == 0xfeff || c.unit == 4 && o.Uint32(b) == 0xfeff {
				order, b = o, b[c.unit:]
				break
			}
		}
	}
	bad := func(at int, why string) (string, error) {
		return "", &modules.PythonError{Type: "UnicodeDecodeError", Msg: fmt.Sprintf("'%s' codec can't decode byte 0x%02x in position %d: %s", c.name, b[at], at, why)}
	}
	var s strings.Builder
	for i := 0; i < len(b); i += c.unit {
		if i+c.unit > len(b) {
			return bad(i, "truncated data")
		}
		if c.unit == 4 {
			u := order.Uint32(b[i:])
			if u > utf8.MaxRune || u >= 0xd800 && u < 0xe000 {
				return bad(i, "code point not in range(0x110000)")
			}
			s.WriteRune(rune(u))
			continue
		}
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(b) {
				return bad(i, "unexpected end of data")
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(b[i+2:]))); r == utf8.RuneError {
				return bad(i, "illegal encoding")
			}
			i += 2
		}
		s.WriteRune(r)
	}
	return s.String(), nil
}
