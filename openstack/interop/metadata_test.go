//go:build openstack

package interop

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	nova "github.com/brine-salt/brine/openstack/lab/cloud"
)

// TestMetadata: Debian's cloud-init reads the metadata that the lab's machines find.
func TestMetadata(t *testing.T) {
	c, err := nova.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	body := `{"server": {"name": "one", "networks": [{"uuid": "private"}], "user_data": "` + base64.StdEncoding.EncodeToString([]byte("#cloud-config\n{}\n")) + `"}}`
	r, err := http.Post(c.Endpoints()["compute"]+"/servers", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	i := c.Instances()[0]
	if len(i.Addresses) != 1 {
		t.Fatalf("the instance has the addresses %v", i.Addresses)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = i.Addresses[0] + ":1"
		c.Metadata().ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	const script = "import sys\nfrom cloudinit.sources import DataSourceOpenStack as o\n" +
		"d = o.read_metadata_service(sys.argv[1])\nprint(d['metadata']['instance-id'], d['userdata'], d['version'])\n"
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", script, s.URL).CombinedOutput()
	if want := i.ID + " b'#cloud-config\\n{}\\n' 2\n"; err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("cloud-init read %s %v, want %s", out, err, want)
	}
}
