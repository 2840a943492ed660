package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestQuickStart runs the commands of the page as they stand, in a directory and on ports of its own. Where the page sleeps the test waits for
// what the reader would see.
func TestQuickStart(t *testing.T) {
	unix(t)
	page, err := os.ReadFile("quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin, ports := t.TempDir(), t.TempDir(), freeport.Ports(t, 2)
	for _, name := range []string{"brine-master", "brine-minion"} {
		if err := os.Rename(buildProgram(t, "..", "./cmd/"+name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	key := bin + "/brine-master key -c " + dir + " --out=json"
	replaced := []string{
		"/tmp/brine", dir, "bin/", bin + "/",
		`interface: 127.0.0.1\n`, fmt.Sprintf(`interface: 127.0.0.1\npublish_port: %d\nret_port: %d\n`, ports[0], ports[1]),
		`master: 127.0.0.1\n`, fmt.Sprintf(`master: 127.0.0.1\npublish_port: %d\nmaster_port: %d\nacceptance_wait_time: 1\n`, ports[0], ports[1]),
		"sleep 5\n", "until " + key + " -L 2>/dev/null | grep -q web1; do sleep 0.1; done\n",
		"sleep 10 ", "until " + bin + "/brine-master salt -c " + dir + " -t 1 web1 test.ping >/dev/null 2>&1; do sleep 0.1; done ",
	}
	for _, c := range []struct{ section, want string }{
		{"I want to see a master and a minion", "\nhello from web1\n"},
		{"I write modules", "\n    Hello Ada from web1\n"},
	} {
		_, text, ok := strings.Cut(string(page), "\n## "+c.section+"\n")
		if !ok {
			t.Fatalf("the page has no section %q", c.section)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		script := "set -em\n"
		for line := range strings.Lines(text) {
			if command, ok := strings.CutPrefix(line, "    "); ok {
				script += command
			}
		}
		for i := 0; i < len(replaced); i += 2 {
			if c.section == "I want to see a master and a minion" && !strings.Contains(script, replaced[i]) {
				t.Errorf("the commands have no %q any more", replaced[i])
			}
			script = strings.ReplaceAll(script, replaced[i], replaced[i+1])
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q in:\n%s", c.section, err, c.want, out)
		}
	}
}
