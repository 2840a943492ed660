//go:build openstack

package reference

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage runs the page's commands and compares the log that it shows.
func TestPage(t *testing.T) {
	needs(t)
	b, err := os.ReadFile("../../../docs/openstack/cfn.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(b), "```")
	// The odd parts are blocks: installing, trying, the log, and the SLS.
	if len(parts) < 9 {
		t.Fatalf("the page has %d blocks", len(parts)/2)
	}
	block := func(i int) string { _, text, _ := strings.Cut(parts[2*i+1], "\n"); return text }
	setup := "set -e\ncd /run\n" + block(0) + "test -x /opt/aws/bin/cfn-hup\n" + block(1)
	sls := "mkdir -p /srv/salt\n" + block(3)
	r := runIn(t, setup, "salt-call", []string{"/bin/sh", "-c", "set -e; " + sls}, false)
	if r.Exit != 0 {
		t.Errorf("exit code %d\n%s", r.Exit, r.Output)
	}
	if got := r.Files["/opt/hello/copy"]; got != "-rw-r----- 0:0 hello\n" {
		t.Errorf("the copy is %q", got)
	}
	stamp := regexp.MustCompile(`\[[^]]*\]`)
	if got, want := stamp.ReplaceAllString(r.Files["/var/log/cfn-init.log"], "[]"), stamp.ReplaceAllString(block(2), "[]"); !strings.HasSuffix(got, want) {
		t.Errorf("the log is %s\nthe page shows %s", got, want)
	}
}
