package heat

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPage: the table of options in docs/openstack/guest.md has the options of the code, with their defaults.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/openstack/guest.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## The option `heat` of the minion")
	if !ok {
		t.Fatal("the page has no table of the option heat")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| *(.*?) *\\|").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = strings.Trim(row[2], "`")
	}
	source, err := os.ReadFile("conf.go")
	if err != nil {
		t.Fatal(err)
	}
	_, set, _ := strings.Cut(string(source), "func (s *Settings) set(")
	set, _, _ = strings.Cut(set, "\n}\n")
	var known []string
	for _, c := range regexp.MustCompile(`(?m)^\tcase (".*"):$`).FindAllStringSubmatch(set, -1) {
		for name := range strings.SplitSeq(c[1], ", ") {
			known = append(known, strings.Trim(name, `"`))
		}
	}
	slices.Sort(known)
	if d := cmp.Diff(known, slices.Sorted(maps.Keys(documented))); d != "" {
		t.Errorf("options of the code, and of the page:\n%s", d)
	}
	s, err := NewSettings(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"enabled": strconv.FormatBool(!s.Disabled), "config_files": "[" + strings.Join(s.ConfFiles, ", ") + "]", "write_config": strconv.FormatBool(!s.KeepConf),
		"timeout": fmt.Sprint(s.Timeout.Seconds()), "signal_ttl": fmt.Sprint(s.SignalTTL.Seconds()), "parallel": fmt.Sprint(s.Parallel), "reboot_command": s.Reboot,
	} {
		if documented[name] != want {
			t.Errorf("the page says that %s is %q by default, it is %q", name, documented[name], want)
		}
	}
}
