package testserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// etcd starts a server that implements version 2 of etcd's HTTP interface like etcd 3.4.23, and returns its port. It
// rejects the user eve. GET /reset deletes all data.
func etcd(t testing.TB) (port string) {
	d := &etcdStore{}
	d.reset()
	s := httptest.NewServer(d)
	t.Cleanup(func() {
		s.CloseClientConnections() // connections that wait for changes
		s.Close()
	})
	return s.URL[strings.LastIndexByte(s.URL, ':')+1:]
}

type etcdNode struct {
	Key        string      `json:"key,omitempty"`
	Value      *string     `json:"value,omitempty"`
	Dir        bool        `json:"dir,omitempty"`
	Expiration string      `json:"expiration,omitempty"`
	TTL        int         `json:"ttl,omitempty"`
	Nodes      []*etcdNode `json:"nodes,omitempty"`
	Modified   int         `json:"modifiedIndex,omitempty"`
	Created    int         `json:"createdIndex,omitempty"`
}

type etcdEvent struct {
	Action string    `json:"action"`
	Node   *etcdNode `json:"node"`
	Prev   *etcdNode `json:"prevNode,omitempty"`
}

type etcdStore struct {
	mu     sync.Mutex
	index  int
	nodes  map[string]*etcdNode
	events []etcdEvent
}

func (d *etcdStore) reset() {
	d.index, d.events, d.nodes = 0, nil, map[string]*etcdNode{"/": {Dir: true}}
}

// ServeHTTP implements http.Handler.
func (d *etcdStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, ok := strings.CutPrefix(r.URL.Path, "/v2/keys")
	if r.URL.Path == "/reset" {
		d.reset()
		return
	}
	key = path.Clean("/" + key)
	user, _, _ := r.BasicAuth()
	switch {
	case !ok:
		http.NotFound(w, r)
	case user == "eve":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message":"Insufficient credentials"}`)
	case r.FormValue("ttl") != "" && strings.Trim(r.FormValue("ttl"), "0123456789") != "":
		d.fail(w, http.StatusBadRequest, 202, "The given TTL in POST form is not a number", `invalid value for "ttl"`)
	case r.Method != http.MethodGet && key == "/":
		d.fail(w, http.StatusBadRequest, 107, "Root is read only", "/")
	case r.FormValue("wait") == "true":
		d.wait(w, r, key)
	case !d.walk(w, key):
	case r.Method == http.MethodGet:
		if d.found(w, key) {
			d.say(w, http.StatusOK, etcdEvent{Action: "get", Node: d.show(key, r.FormValue("recursive") == "true")})
		}
	case r.Method == http.MethodPut:
		d.put(w, r, key)
	case r.Method == http.MethodDelete && d.found(w, key):
		d.remove(w, r, key)
	}
}

func (d *etcdStore) say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Etcd-Cluster-Id", "cdf818194e3a8c32")
	w.Header().Set("X-Etcd-Index", strconv.Itoa(d.index))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (d *etcdStore) fail(w http.ResponseWriter, status, code int, message, cause string) {
	d.say(w, status, map[string]any{"errorCode": code, "message": message, "cause": cause, "index": d.index})
}

// walk reports whether all nodes above a key are directories or missing.
func (d *etcdStore) walk(w http.ResponseWriter, key string) bool {
	for dir := path.Dir(key); dir != "/"; dir = path.Dir(dir) {
		if n := d.nodes[dir]; n != nil && !n.Dir {
			d.fail(w, http.StatusBadRequest, 104, "Not a directory", dir)
			return false
		}
	}
	return true
}

func (d *etcdStore) found(w http.ResponseWriter, key string) bool {
	if d.nodes[key] == nil {
		d.fail(w, http.StatusNotFound, 100, "Key not found", key)
		return false
	}
	return true
}

// show returns a node with its children or, if deep is set, with all nodes below it.
func (d *etcdStore) show(key string, deep bool) *etcdNode {
	n := *d.nodes[key]
	for _, k := range slices.Sorted(maps.Keys(d.nodes)) {
		if k == "/" || path.Dir(k) != key || strings.HasPrefix(path.Base(k), "_") {
			continue
		}
		below := *d.nodes[k]
		if deep {
			below = *d.show(k, true)
		}
		n.Nodes = append(n.Nodes, &below)
	}
	return &n
}

func (d *etcdStore) put(w http.ResponseWriter, r *http.Request, key string) {
	before, status := d.nodes[key], http.StatusOK
	if before != nil && before.Dir {
		d.fail(w, http.StatusForbidden, 102, "Not a file", key)
		return
	}
	d.index++
	for dir := path.Dir(key); d.nodes[dir] == nil; dir = path.Dir(dir) {
		d.nodes[dir] = &etcdNode{Key: dir, Dir: true, Modified: d.index, Created: d.index}
	}
	n := &etcdNode{Key: key, Modified: d.index, Created: d.index, Dir: r.FormValue("dir") == "true"}
	if !n.Dir {
		v := r.FormValue("value")
		n.Value = &v
	}
	if n.TTL, _ = strconv.Atoi(r.FormValue("ttl")); n.TTL > 0 {
		n.Expiration = "2100-01-01T00:00:00.000000000Z"
	}
	if before == nil {
		status = http.StatusCreated
	}
	d.nodes[key] = n
	d.happened(w, status, etcdEvent{"set", n, before})
}

func (d *etcdStore) remove(w http.ResponseWriter, r *http.Request, key string) {
	n := d.nodes[key]
	all := r.FormValue("recursive") == "true"
	switch {
	case n.Dir && !all && r.FormValue("dir") != "true":
		d.fail(w, http.StatusForbidden, 102, "Not a file", key)
		return
	case n.Dir && !all && len(d.show(key, false).Nodes) > 0:
		d.fail(w, http.StatusForbidden, 108, "Directory not empty", key)
		return
	}
	d.index++
	for k := range d.nodes {
		if k == key || strings.HasPrefix(k, key+"/") {
			delete(d.nodes, k)
		}
	}
	d.happened(w, http.StatusOK, etcdEvent{"delete", &etcdNode{Key: key, Dir: n.Dir, Modified: d.index, Created: n.Created}, n})
}

func (d *etcdStore) happened(w http.ResponseWriter, status int, e etcdEvent) {
	d.events = append(d.events, e)
	d.say(w, status, e)
}

// wait responds with the first event since an index. It does not wait for a future event: it then sends the beginning
// of a response and nothing more until the client disconnects.
func (d *etcdStore) wait(w http.ResponseWriter, r *http.Request, key string) {
	from, _ := strconv.Atoi(r.FormValue("waitIndex"))
	for _, e := range d.events {
		below := r.FormValue("recursive") == "true" && strings.HasPrefix(e.Node.Key, strings.TrimSuffix(key, "/")+"/")
		if from > 0 && e.Node.Modified >= from && (e.Node.Key == key || below) {
			d.say(w, http.StatusOK, e)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	d.mu.Unlock()
	<-r.Context().Done()
	d.mu.Lock()
}
