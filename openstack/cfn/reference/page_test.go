//go:build openstack

package reference

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage runs the commands on the page and compares the log that it shows.
func TestPage(t *testing.T) {
	needs(t)
	b, err := os.ReadFile("../../../docs/openstack/cfn.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(name string) string {
		t.Helper()
		_, text, ok := strings.Cut(string(b), " "+name+"\n")
		text, _, end := strings.Cut(text, "```")
		if !ok || !end {
			t.Fatalf("the page has no block %s", name)
		}
		return text
	}
	setup := "set -e\ncd /run\n" + block("install") + "test -x /opt/aws/bin/cfn-hup\n" + block("try")
	sls := "mkdir -p /srv/salt\n" + block("to-sls")
	r := runIn(t, setup, "salt-call", []string{"/bin/sh", "-c", "set -e; " + sls}, false)
	if r.Exit != 0 {
		t.Errorf("exit code %d\n%s", r.Exit, r.Output)
	}
	if got := r.Files["/opt/hello/copy"]; got != "-rw-r----- 0:0 hello\n" {
		t.Errorf("the copy is %q", got)
	}
	stamp := regexp.MustCompile(`\[[^]]*\]`)
	if got, want := stamp.ReplaceAllString(r.Files["/var/log/cfn-init.log"], "[]"), stamp.ReplaceAllString(block("log"), "[]"); !strings.HasSuffix(got, want) {
		t.Errorf("the log is %s\nthe page shows %s", got, want)
	}
}
