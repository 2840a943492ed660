package modules

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// NormalMode returns a file mode in the form in which Salt compares modes: four octal digits. None becomes nil
// (salt.utils.files.normalize_mode).
func NormalMode(v any) any {
	if v == nil {
		return nil
	}
	s := strings.ReplaceAll(pytext.Str(v), "0o", "0")
	s = strings.TrimLeft(strings.Trim(strings.Trim(s, `"`), "'"), "0")
	if len(s) >= 4 {
		return s
	}
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1] + strings.Repeat("0", 4-len(s)) + s[1:]
	}
	return strings.Repeat("0", 4-len(s)) + s
}
