package grains

import (
	"encoding/binary"
	"io"
	"os"
	"strings"
)

// locale returns what Python's locale.getlocale() returns in this environment: language and encoding, nil for
// the C locale. Python replaces the C locale by C.UTF-8 (PEP 538), which its tables call en_US, unless LC_ALL
// is set. A locale that is not installed counts as C.
func (h *host) locale() (language, encoding any) {
	name, forced := h.getenv("LC_ALL"), true
	if name == "" {
		forced = false
		if name = h.getenv("LC_CTYPE"); name == "" {
			name = h.getenv("LANG")
		}
	}
	base, codeset := splitLocale(name)
	isC := base == "" || base == "C" && codeset == "" || base == "POSIX" ||
		!h.hasLocale(base, codeset)
	switch {
	case isC && forced:
		return nil, nil
	case isC, base == "C":
		return "en_US", "UTF-8"
	}
	return base, encodingName(base, codeset)
}

// splitLocale splits "de_DE.UTF-8@euro". The modifier only decides the codeset if none is given.
func splitLocale(name string) (base, codeset string) {
	name, modifier, _ := strings.Cut(name, "@")
	base, codeset, _ = strings.Cut(name, ".")
	if codeset == "" && modifier == "euro" {
		codeset = "ISO8859-15"
	}
	return base, codeset
}

// encodingName returns Python's spelling of a codeset.
func encodingName(base, codeset string) any {
	switch c := normalCodeset(codeset); {
	case c == "utf8":
		return "UTF-8"
	case c == "":
		switch base[:min(2, len(base))] {
		case "pl", "cs", "hu", "sk", "sl", "hr", "ro":
			return "ISO8859-2"
		case "ru", "be", "bg", "mk", "sr":
			return "ISO8859-5"
		case "ja", "zh", "ko":
			return "eucJP"
		}
		return "ISO8859-1"
	case strings.HasPrefix(c, "iso8859"):
		return "ISO8859-" + c[len("iso8859"):]
	default:
		return codeset
	}
}

// normalCodeset returns the C library's spelling of a codeset in locale names: lower-case letters and digits.
func normalCodeset(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

// hasLocale reports whether the C library has a locale. C.UTF-8 is built in; others are directories or entries
// of the archive.
func (h *host) hasLocale(base, codeset string) bool {
	name := base
	if c := normalCodeset(codeset); c != "" {
		name += "." + c
	}
	if name == "C.utf8" {
		return true
	}
	if strings.ContainsAny(name, `/\`) {
		return false
	}
	if h.isDir("/usr/lib/locale/"+name) || codeset != "" &&
		h.isDir("/usr/lib/locale/"+base+"."+codeset) {
		return true
	}
	if !h.exists("/usr/lib/locale") {
		// Other C libraries than GNU's know only UTF-8, for every language.
		return normalCodeset(codeset) == "utf8"
	}
	return h.inLocaleArchive(name)
}

// inLocaleArchive looks a name up in the string table of glibc's locale archive.
func (h *host) inLocaleArchive(name string) bool {
	f, err := os.Open(h.path("/usr/lib/locale/locale-archive"))
	if err != nil {
		return false
	}
	defer f.Close()
	var head [28]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false
	}
	// The header: magic and serial; offset, used and size of the hash table of names; offset and used bytes of
	// the string table.
	order := binary.ByteOrder(binary.LittleEndian)
	if order.Uint32(head[:]) != 0xde020109 {
		if order = binary.BigEndian; order.Uint32(head[:]) != 0xde020109 {
			return false
		}
	}
	offset, used := order.Uint32(head[20:]), order.Uint32(head[24:])
	if used > 1<<20 {
		return false
	}
	table := make([]byte, used)
	if _, err := f.ReadAt(table, int64(offset)); err != nil {
		return false
	}
	text := "\x00" + string(table)
	return strings.Contains(text, "\x00"+name+"\x00")
}
