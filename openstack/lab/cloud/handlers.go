package cloud

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// createServer holds the fields of Nova's request that are used here. Images and flavors are ids, or "" if there are
// none.
type createServer struct {
	Name     string            `json:"name"`
	Image    any               `json:"imageRef"`
	Flavor   any               `json:"flavorRef"`
	Key      string            `json:"key_name"`
	UserData string            `json:"user_data"`
	Metadata map[string]string `json:"metadata"`
	Networks json.RawMessage   `json:"networks"`
}

// networks returns the server's connections: ports, and networks in which Nova creates one. The value of networks may
// also be the word auto or none.
func (s createServer) networks() (list []connection) {
	json.Unmarshal(s.Networks, &list)
	return list
}

// A connection is one entry of a server's networks in Nova: the id of a port, or of a network.
type connection struct {
	Port    string `json:"port"`
	Network string `json:"uuid"`
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// handler routes requests. Requests have a Keystone token, but this service ignores whose it is.
func (c *Cloud) handler() http.Handler {
	m := http.NewServeMux()
	c.compute(m)
	c.network(m)
	c.image(m)
	c.volume(m)
	c.object(m)
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		if q := r.Method + " " + r.URL.RequestURI(); !slices.Contains(c.unknown, q) && len(c.unknown) < 1000 {
			c.unknown = append(c.unknown, q)
		}
		c.mu.Unlock()
		fail(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path)
	})
	return m
}

// version describes Nova's API, without microversions that need other answers.
func (c *Cloud) version() map[string]any {
	return map[string]any{"id": "v2.1", "status": "CURRENT", "version": "2.1", "min_version": "2.1", "updated": "2013-07-23T11:33:21Z",
		"links": []any{map[string]any{"rel": "self", "href": "http://" + c.addr + "/v2.1/"}}}
}

func (c *Cloud) compute(m *http.ServeMux) {
	version := func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]any{"version": c.version()}) }
	m.HandleFunc("GET /v2.1", version)
	m.HandleFunc("GET /v2.1/{$}", version)
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"versions": []any{c.version(), map[string]any{"id": "v2.0", "status": "CURRENT",
			"links": []any{map[string]any{"rel": "self", "href": "http://" + c.addr + "/v2.0/"}}}}})
	})
	m.HandleFunc("POST /v2.1/servers", c.createServer)
	m.HandleFunc("GET /v2.1/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		list := []any{}
		for _, i := range c.Instances() {
			if !r.URL.Query().Has("marker") { // the first page has all
				list = append(list, c.describe(i))
			}
		}
		answer(w, 200, map[string]any{"servers": list})
	})
	m.HandleFunc("GET /v2.1/servers/{id}", c.withInstance(func(w http.ResponseWriter, _ *http.Request, i Instance) {
		answer(w, 200, map[string]any{"server": c.describe(i)})
	}))
	m.HandleFunc("PUT /v2.1/servers/{id}", c.withInstance(func(w http.ResponseWriter, r *http.Request, i Instance) {
		var body struct {
			Server struct{ Name string }
		}
		if !read(w, r, &body) {
			return
		}
		c.mu.Lock()
		if x := c.instances[i.ID]; x != nil && body.Server.Name != "" {
			x.Name = body.Server.Name
			i = *x
		}
		c.mu.Unlock()
		answer(w, 200, map[string]any{"server": c.describe(i)})
	}))
	m.HandleFunc("DELETE /v2.1/servers/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !c.remove(r.PathValue("id")) {
			fail(w, 404, "Instance could not be found.")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	m.HandleFunc("POST /v2.1/servers/{id}/metadata", c.withInstance(func(w http.ResponseWriter, r *http.Request, i Instance) {
		var body struct {
			Metadata map[string]string `json:"metadata"`
		}
		if !read(w, r, &body) {
			return
		}
		c.mu.Lock()
		if x := c.instances[i.ID]; x != nil {
			x.Metadata = body.Metadata
		}
		c.mu.Unlock()
		answer(w, 200, body)
	}))
	m.HandleFunc("POST /v2.1/servers/{id}/action", c.withInstance(c.action))
	m.HandleFunc("GET /v2.1/servers/{id}/os-interface", c.withInstance(func(w http.ResponseWriter, _ *http.Request, i Instance) {
		list := []any{}
		for _, p := range c.portsOf(i.ID) {
			list = append(list, map[string]any{"port_id": p["id"], "net_id": p["network_id"], "mac_addr": p["mac_address"], "port_state": "ACTIVE", "fixed_ips": p["fixed_ips"]})
		}
		answer(w, 200, map[string]any{"interfaceAttachments": list})
	}))
	m.HandleFunc("GET /v2.1/flavors/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, map[string]any{"flavor": flavor(r.PathValue("id"))})
	})
	m.HandleFunc("GET /v2.1/os-keypairs/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, map[string]any{"keypair": map[string]any{"name": r.PathValue("name"), "public_key": "", "fingerprint": ""}})
	})
	m.HandleFunc("GET /v2.1/os-server-groups", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]any{"server_groups": []any{}}) })
	m.HandleFunc("GET /v2.1/limits", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
			"maxServerMeta": 128, "maxPersonality": 5, "maxPersonalitySize": 10240}}})
	})
}

func flavor(id string) map[string]any {
	return map[string]any{"id": id, "name": id, "ram": 512, "disk": 1, "vcpus": 1, "links": []any{}}
}

func (c *Cloud) createServer(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Server createServer `json:"server"`
	}
	if !read(w, r, &body) {
		return
	}
	i, err := c.create(r.Header.Get("X-Project-Id"), body.Server)
	if err != nil {
		answer(w, 400, map[string]any{"badRequest": map[string]any{"code": 400, "message": err.Error()}})
		return
	}
	answer(w, http.StatusAccepted, map[string]any{"server": map[string]any{"id": i.ID, "adminPass": "none", "OS-DCF:diskConfig": "MANUAL",
		"links": []any{map[string]any{"rel": "self", "href": "http://" + c.addr + "/v2.1/servers/" + i.ID}}}})
}

func (c *Cloud) withInstance(f func(http.ResponseWriter, *http.Request, Instance)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		i := c.instances[r.PathValue("id")]
		var copied Instance
		if i != nil {
			copied = *i
		}
		c.mu.Unlock()
		if i == nil {
			fail(w, 404, "Instance could not be found.")
			return
		}
		f(w, r, copied)
	}
}

// action performs Heat's action on an existing server.
func (c *Cloud) action(w http.ResponseWriter, r *http.Request, i Instance) {
	var body map[string]any
	if !read(w, r, &body) {
		return
	}
	become := map[string]string{"suspend": "SUSPENDED", "resume": "ACTIVE", "reboot": "ACTIVE", "os-start": "ACTIVE", "os-stop": "SHUTOFF",
		"resize": "VERIFY_RESIZE", "confirmResize": "ACTIVE"}
	for name := range body {
		if name == "rebuild" {
			c.rebuild(i.ID, body[name])
			answer(w, http.StatusAccepted, map[string]any{"server": c.describe(i)})
			return
		}
		status, known := become[name]
		if !known {
			answer(w, 400, map[string]any{"badRequest": map[string]any{"code": 400, "message": "There is no such action: " + name}})
			return
		}
		c.mu.Lock()
		if x := c.instances[i.ID]; x != nil {
			x.status = status
			if v, ok := body[name].(map[string]any); ok && name == "resize" {
				x.Flavor = text(v["flavorRef"])
			}
		}
		c.mu.Unlock()
	}
	w.WriteHeader(http.StatusAccepted)
}

// describe returns a server in Nova's format.
func (c *Cloud) describe(i Instance) map[string]any {
	addresses := map[string]any{}
	for _, p := range c.portsOf(i.ID) {
		list, _ := addresses[text(p["network_id"])].([]any)
		addresses[text(p["network_id"])] = append(list, map[string]any{"version": 4, "addr": address(p), "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": p["mac_address"]})
	}
	out := map[string]any{"id": i.ID, "name": i.Name, "status": i.status, "tenant_id": i.Project, "user_id": "", "metadata": i.Metadata,
		"created": i.created.UTC().Format(time.RFC3339), "updated": i.created.UTC().Format(time.RFC3339), "image": map[string]any{"id": i.Image},
		"flavor": map[string]any{"id": i.Flavor}, "addresses": addresses, "key_name": i.Key, "OS-EXT-STS:task_state": nil, "accessIPv4": "", "accessIPv6": "",
		"OS-EXT-STS:vm_state": strings.ToLower(i.status), "config_drive": "", "links": []any{}}
	if i.fault != "" {
		out["fault"] = map[string]any{"code": 500, "message": i.fault, "created": out["created"]}
	}
	return out
}

func (c *Cloud) image(m *http.ServeMux) {
	one := func(id string) map[string]any {
		return map[string]any{"id": id, "name": id, "status": "active", "visibility": "public", "min_ram": 0, "min_disk": 0, "disk_format": "qcow2",
			"container_format": "bare", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "schema": "/v2/schemas/image"}
	}
	m.HandleFunc("GET /v2/images/{id}", func(w http.ResponseWriter, r *http.Request) { answer(w, 200, one(r.PathValue("id"))) })
	m.HandleFunc("GET /v2/images", func(w http.ResponseWriter, r *http.Request) {
		list := []any{}
		if n := r.URL.Query().Get("name"); n != "" {
			list = append(list, one(n))
		}
		answer(w, 200, map[string]any{"images": list})
	})
	m.HandleFunc("GET /v2/schemas/image", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"name": "image", "properties": map[string]any{}, "additionalProperties": map[string]any{"type": "string"}})
	})
}

// volume answers for Cinder: a volume is available as soon as it is created.
func (c *Cloud) volume(m *http.ServeMux) {
	m.HandleFunc("POST /v3/{project}/volumes", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Volume map[string]any }
		if !read(w, r, &body) {
			return
		}
		v := map[string]any{"id": uuid(), "status": "available", "attachments": []any{}, "size": body.Volume["size"], "name": body.Volume["name"]}
		c.mu.Lock()
		c.volumes[text(v["id"])] = v
		c.mu.Unlock()
		answer(w, http.StatusAccepted, map[string]any{"volume": v})
	})
	m.HandleFunc("GET /v3/{project}/volumes/detail", func(w http.ResponseWriter, r *http.Request) {
		list := []any{}
		c.mu.Lock()
		for _, v := range c.volumes {
			if n := r.URL.Query().Get("name"); (n == "" || n == text(v["name"])) && !r.URL.Query().Has("marker") { // the first page has all
				list = append(list, v)
			}
		}
		c.mu.Unlock()
		answer(w, 200, map[string]any{"volumes": list})
	})
	m.HandleFunc("GET /v3/{project}/volumes/{id}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		v := c.volumes[r.PathValue("id")]
		c.mu.Unlock()
		if v == nil {
			fail(w, 404, "Volume could not be found.")
			return
		}
		answer(w, 200, map[string]any{"volume": v})
	})
	m.HandleFunc("DELETE /v3/{project}/volumes/{id}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		delete(c.volumes, r.PathValue("id"))
		c.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	})
}

// object answers for Swift: clients may ask for the checksums of an account's objects.
func (c *Cloud) object(m *http.ServeMux) {
	m.HandleFunc("GET /swift/v1/{account}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	m.HandleFunc("DELETE /swift/v1/{path...}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	m.HandleFunc("HEAD /swift/v1/{account}/{container}/{object}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		dir := c.objects
		c.mu.Unlock()
		name := filepath.Join(r.PathValue("container"), r.PathValue("object"))
		if dir == "" || !filepath.IsLocal(name) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		defer f.Close()
		sum := md5.New()
		if _, err := io.Copy(sum, f); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("ETag", hex.EncodeToString(sum.Sum(nil)))
	})
}

func (c *Cloud) network(m *http.ServeMux) {
	list := func(kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			out := []any{}
			q := r.URL.Query()
			for _, id := range slices.Concat(q["id"], q["name"]) {
				out = append(out, network(kind, id))
			}
			answer(w, 200, map[string]any{kind: out})
		}
	}
	for kind, single := range map[string]string{"networks": "network", "subnets": "subnet", "security-groups": "security_group"} {
		key := strings.ReplaceAll(kind, "-", "_")
		m.HandleFunc("GET /v2.0/"+kind, list(key))
		m.HandleFunc("GET /v2.0/"+kind+"/{id}", func(w http.ResponseWriter, r *http.Request) {
			answer(w, 200, map[string]any{single: network(key, r.PathValue("id"))})
		})
	}
	for kind, single := range map[string]string{"security-groups": "security_group", "security-group-rules": "security_group_rule"} {
		m.HandleFunc("POST /v2.0/"+kind, func(w http.ResponseWriter, r *http.Request) {
			body := map[string]map[string]any{}
			if !read(w, r, &body) || body[single] == nil {
				return
			}
			body[single]["id"] = uuid()
			answer(w, http.StatusCreated, body)
		})
		m.HandleFunc("DELETE /v2.0/"+kind+"/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	m.HandleFunc("GET /v2.0/extensions", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]any{"extensions": []any{}}) })
	m.HandleFunc("GET /v2.0/floatingips", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]any{"floatingips": []any{}}) })
	m.HandleFunc("POST /v2.0/ports", c.createPort)
	m.HandleFunc("GET /v2.0/ports", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, map[string]any{"ports": c.portsOf(r.URL.Query().Get("device_id"))})
	})
	m.HandleFunc("GET /v2.0/ports/{id}", c.withPort(func(w http.ResponseWriter, p map[string]any) { answer(w, 200, map[string]any{"port": p}) }))
	m.HandleFunc("PUT /v2.0/ports/{id}", c.withPort(func(w http.ResponseWriter, p map[string]any) { answer(w, 200, map[string]any{"port": p}) }))
	m.HandleFunc("DELETE /v2.0/ports/{id}", c.withPort(func(w http.ResponseWriter, p map[string]any) {
		c.mu.Lock()
		delete(c.ports, text(p["id"]))
		c.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}))
}

// network returns a network, subnet or security group: every requested one exists.
func network(kind, id string) map[string]any {
	out := map[string]any{"id": id, "name": id, "status": "ACTIVE", "tenant_id": ""}
	switch kind {
	case "networks":
		out["subnets"], out["admin_state_up"] = []any{"subnet-of-" + id}, true
	case "subnets":
		out["network_id"], out["cidr"], out["ip_version"] = strings.TrimPrefix(id, "subnet-of-"), "10.0.0.0/16", 4
	}
	return out
}

func (c *Cloud) createPort(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Port map[string]any `json:"port"`
	}
	if !read(w, r, &body) {
		return
	}
	c.mu.Lock()
	p := c.newPort(body.Port)
	c.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{"port": p})
}

// newPort creates a port with an address that was never used before. The caller holds the lock.
func (c *Cloud) newPort(spec map[string]any) map[string]any {
	c.made++
	n := c.made + 9
	p := map[string]any{"id": uuid(), "status": "ACTIVE", "device_id": "", "mac_address": fmt.Sprintf("fa:16:3e:00:%02x:%02x", n>>8&255, n&255),
		"fixed_ips": []any{map[string]any{"ip_address": fmt.Sprintf("10.0.%d.%d", n>>8&255, n&255), "subnet_id": "subnet-of-" + text(spec["network_id"])}}}
	for k, v := range spec {
		if k != "fixed_ips" {
			p[k] = v
		}
	}
	c.ports[text(p["id"])] = p
	return p
}

func (c *Cloud) withPort(f func(http.ResponseWriter, map[string]any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
		c.mu.Lock()
		p := c.ports[r.PathValue("id")]
		c.mu.Unlock()
		if p == nil {
			answer(w, 404, map[string]any{"NeutronError": map[string]any{"type": "PortNotFound", "message": "Port could not be found.", "detail": ""}})
			return
		}
		f(w, p)
	}
}

// portsOf returns the ports of an instance.
func (c *Cloud) portsOf(instance string) []map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []map[string]any{}
	for _, p := range c.ports {
		if p["device_id"] == instance {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(text(a["id"]), text(b["id"])) })
	return out
}

func address(port map[string]any) string {
	list, _ := port["fixed_ips"].([]any)
	if len(list) == 0 {
		return ""
	}
	ip, _ := list[0].(map[string]any)
	return text(ip["ip_address"])
}
