package cloud_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/lab/cloud"
)

func call(t *testing.T, method, url string, in, out any) int {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if out != nil {
		if err := json.NewDecoder(r.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	return r.StatusCode
}

// TestInstance: an instance has the status BUILD until it has booted, has the address of its port, and its guest ends
// with it.
func TestInstance(t *testing.T) {
	c, err := cloud.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	release := make(chan struct{})
	var stopped atomic.Int32
	c.OnBoot(func(_ context.Context, i cloud.Instance) (func(), error) {
		<-release
		if i.Name == "broken" {
			return nil, errors.New("no such image")
		}
		return func() { stopped.Add(1) }, nil
	})
	var port struct{ Port struct{ ID string } }
	if code := call(t, "POST", c.Endpoints()["network"]+"/v2.0/ports", map[string]any{"port": map[string]any{"network_id": "net"}}, &port); code != 201 {
		t.Fatal(code)
	}
	servers := c.Endpoints()["compute"] + "/servers"
	create := func(name string) string {
		t.Helper()
		var out struct{ Server struct{ ID string } }
		spec := map[string]any{"name": name, "imageRef": "i", "flavorRef": "f", "user_data": base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")),
			"networks": []any{map[string]any{"port": port.Port.ID}}}
		if code := call(t, "POST", servers, map[string]any{"server": spec}, &out); code != 202 {
			t.Fatal(code)
		}
		return out.Server.ID
	}
	type server struct {
		Server struct {
			Status    string
			Addresses map[string][]struct{ Addr string }
			Fault     struct{ Message string }
		}
	}
	status := func(id, not string) server {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			var s server
			if call(t, "GET", servers+"/"+id, nil, &s); s.Server.Status != not {
				return s
			}
		}
		t.Fatal("still", not)
		return server{}
	}
	id := create("good")
	if s := status(id, ""); s.Server.Status != "BUILD" || len(s.Server.Addresses["net"]) != 1 || !strings.HasPrefix(s.Server.Addresses["net"][0].Addr, "10.0.0.") {
		t.Errorf("%+v", s)
	}
	broken := create("broken")
	close(release)
	if s := status(id, "BUILD"); s.Server.Status != "ACTIVE" {
		t.Errorf("%+v", s)
	}
	if s := status(broken, "BUILD"); s.Server.Status != "ERROR" || s.Server.Fault.Message != "no such image" {
		t.Errorf("%+v", s)
	}
	if code := call(t, "DELETE", servers+"/"+id, nil, nil); code != 204 || stopped.Load() != 1 {
		t.Error(code, stopped.Load())
	}
	if code := call(t, "GET", servers+"/"+id, nil, nil); code != 404 {
		t.Error(code)
	}
	large := map[string]any{"server": map[string]any{"name": "x", "user_data": strings.Repeat("A", 65536)}}
	if code := call(t, "POST", servers, large, nil); code != 400 {
		t.Error("too much user data:", code)
	}
	objects := t.TempDir()
	if err := os.Mkdir(objects+"/c", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(objects+"/c/o", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.SetObjects(objects)
	for name, want := range map[string]string{"c/o": "5d41402abc4b2a76b9719d911017c592", "c/none": ""} {
		account := strings.ReplaceAll(c.Endpoints()["object-store"], "%(tenant_id)s", "p")
		resp, err := http.Head(account + "/" + name)
		if err != nil || resp.Header.Get("ETag") != want || (resp.StatusCode == 200) != (want != "") {
			t.Errorf("the sum of %s: %v, %v", name, resp, err)
		}
	}
	call(t, "GET", servers+"/x/nothing", nil, nil)
	if d := cmp.Diff([]string{"GET /v2.1/servers/x/nothing"}, c.Unknown()); d != "" {
		t.Error(d)
	}
}

// TestParts: user data is parsed as cloud-init parses it.
func TestParts(t *testing.T) {
	const boundary = "===x=="
	encoded := base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\necho grüß\n"))
	config := `{"salt_minion": {"conf": {"id": "m"}, "grains": {"a": 1}, "private_key": "k", "public_key": "p"}}`
	text := fmt.Sprintf("Content-Type: multipart/mixed; boundary=\"%[1]s\"\nMIME-Version: 1.0\n\n--%[1]s\nContent-Type: text/x-shellscript; charset=\"utf-8\"\n"+
		"Content-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"run\"\n\n%[2]s\n--%[1]s\nContent-Type: text/cloud-config\n\n#cloud-config\n%[3]s\n--%[1]s--\n",
		boundary, encoded, config)
	parts, err := cloud.Parts([]byte(text))
	if err != nil || len(parts) != 2 || parts[0].Name != "run" || string(parts[0].Content) != "#!/bin/sh\necho grüß\n" {
		t.Fatal(parts, err)
	}
	m, err := cloud.FindSaltMinion(parts)
	if err != nil {
		t.Fatal(err)
	}
	files, err := m.Files()
	if err != nil || len(files) != 4 || string(files["/etc/salt/pki/minion/minion.pem"]) != "k" {
		t.Error(files, err)
	}
	if parts, err := cloud.Parts([]byte("#!/bin/sh\n")); err != nil || parts[0].Kind != "text/x-shellscript" {
		t.Error(parts, err)
	}
	if m, err := cloud.FindSaltMinion([]cloud.Part{{Kind: "text/cloud-config", Content: []byte("#cloud-config\npackages: []\n")}}); m != nil || err != nil {
		t.Error(m, err)
	}
	for _, bad := range []string{"", "hello", "Content-Type: text/plain\n\nx"} {
		if parts, err := cloud.Parts([]byte(bad)); err == nil {
			t.Error(bad, parts)
		}
	}
}
