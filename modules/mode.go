package modules

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// NormalMode returns the mode of a file in the form in which modes are compared: four digits, or nil for None
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
