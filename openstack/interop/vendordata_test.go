//go:build openstack

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/openstack/lab"
	nova "github.com/brine-salt/brine/openstack/lab/cloud"
)

// TestVendordata: Nova asks the master for the vendordata of an instance with its own token, which the real Keystone
// verifies; the guest joins with nothing else. A master that accepts no service's token refuses, and then the
// instance cannot be created.
func TestVendordata(t *testing.T) {
	ctx := testContext(t)
	ports := freeport.Ports(t, 3)
	dir := t.TempDir()
	l := &novaLab{Lab: cloud, Socket: filepath.Join(dir, "api.sock"), guests: map[string]*lab.Guest{}}
	conf := filepath.Join(dir, "token.conf")
	credentials := "OS_AUTH_URL=" + cloud.AuthURL() + "\nOS_USERNAME=heat\nOS_PASSWORD=heatpw\nOS_PROJECT_NAME=service\n"
	if err := os.WriteFile(conf, []byte(credentials+"ALLOW_USERS=admin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := map[string]any{"interface": "127.0.0.1", "publish_port": ports[0], "ret_port": ports[1], "advertise": []string{fmt.Sprintf("127.0.0.1:%d", ports[1])},
		"user": "root", "root_dir": dir, "pki_dir": filepath.Join(dir, "pki"), "cachedir": filepath.Join(dir, "cache"), "sock_dir": filepath.Join(dir, "run"),
		"log_file": filepath.Join(dir, "log"), "pidfile": filepath.Join(dir, "pid"), "rest_cherrypy": map[string]any{"socket": l.Socket},
		"external_auth": map[string]any{"peer": map[string]any{"0": []string{".*", "@runner", "@wheel"}}},
		"vendordata": map[string]any{"host": "127.0.0.1", "port": ports[2], "disable_ssl": true,
			"command": []string{filepath.Join(bin, "brine-keystone-token"), "-c", conf}}}
	text, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	startMaster(t, dir)

	c, err := nova.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	client := cloud.Heat // the administrator takes the role of Nova's service user
	c.OnVendordata(func(ctx context.Context, i nova.Instance) (map[string]any, error) {
		token, _, err := client.Token(ctx)
		if err != nil {
			return nil, err
		}
		return askVendordata(ctx, ports[2], token, i)
	})
	c.OnBoot(func(ctx context.Context, i nova.Instance) (func(), error) {
		brine, _ := i.Vendordata["brine"].(map[string]any)
		doc, _ := brine["salt"].(map[string]any)
		config, _ := doc["config"].(map[string]any)
		if config["id"] != i.ID {
			return nil, fmt.Errorf("vendordata is %v", i.Vendordata)
		}
		g, err := l.StartGuest(ctx, "vendordata")
		if err != nil {
			return nil, err
		}
		files, err := nova.SaltMinion{Conf: config}.Files()
		if err != nil {
			return g.Close, err
		}
		for path, content := range files {
			if err := g.WriteFile(path, string(content), 0o600); err != nil {
				return g.Close, err
			}
		}
		_, err = g.Start("minion", nil, filepath.Join(bin, "salt-minion"), "-l", "info")
		return g.Close, err
	})
	if err := awaitMaster(ctx, l); err != nil {
		t.Fatal(err)
	}
	id := createInstance(t, c, "one")
	l.awaitMinions(t, ctx, 1)
	record := l.minions(t)[0].(map[string]any)
	if record["id"] != id || record["tenant"] != "blue" || record["joined"] != true {
		t.Errorf("minion %v", record)
	}

	// Keystone also verifies the token of a user who is not a service.
	client = cloud.Demo
	id = createInstance(t, c, "two")
	for {
		list := c.Instances()
		if i := list[len(list)-1]; i.ID == id && i.Status() != "BUILD" {
			if i.Status() != "ERROR" || !strings.Contains(i.Fault(), "401") && !strings.Contains(i.Fault(), "403") {
				t.Errorf("instance with a token of no service: %s %s", i.Status(), i.Fault())
			}
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("the second instance is still being built")
		case <-time.After(100 * time.Millisecond):
		}
	}
	if list := l.minions(t); len(list) != 1 {
		t.Errorf("minions %v", list)
	}
}

// startMaster starts a master with the configuration directory dir that ends with the test.
func startMaster(t *testing.T, dir string) {
	t.Helper()
	g, err := cloud.StartGuest(testContext(t), strings.ToLower(t.Name())+"-master")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if _, err := g.Start("master", nil, filepath.Join(bin, "brine-master"), "master", "-c", dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("%s\n%s", b, cloud.LogsOf("guest-*", 3000))
		}
	})
}

func awaitMaster(ctx context.Context, l *novaLab) error {
	for {
		code, _, err := l.tryAsk("/v1/minions")
		if err == nil && code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the master does not answer: %d %v", code, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// askVendordata sends the request that Nova sends.
func askVendordata(ctx context.Context, port int, token string, i nova.Instance) (map[string]any, error) {
	body, err := json.Marshal(map[string]any{"project-id": "blue", "instance-id": i.ID, "image-id": i.Image, "user-data": nil, "hostname": i.Name,
		"metadata": map[string]any{}, "boot-roles": "member"})
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/v1/vendordata", port), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("X-Auth-Token", token)
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("vendordata: %s: %s", r.Status, answer)
	}
	var doc map[string]any
	err = json.Unmarshal(answer, &doc)
	return map[string]any{"brine": doc}, err
}

// createInstance creates an instance without Heat and returns its id.
func createInstance(t *testing.T, c *nova.Cloud, name string) string {
	t.Helper()
	body := fmt.Sprintf(`{"server": {"name": %q, "imageRef": "debian", "flavorRef": "small", "networks": "none"}}`, name)
	r, err := http.Post(c.Endpoints()["compute"]+"/servers", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var out struct{ Server struct{ ID string } }
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil || out.Server.ID == "" {
		t.Fatal(r.Status, err)
	}
	return out.Server.ID
}
