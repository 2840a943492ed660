// Package cloud answers on loopback the requests that Heat and Trove make to Nova, Neutron, Glance, Cinder and Swift
// for a machine, and boots a guest with the user data that Nova would give it. It keeps no flavors, images, networks
// or key pairs: every name exists. A port is only an address; Boot must make it reachable.
//
//	heat-engine ─► POST /v2.1/servers {user_data} ─► Boot(instance) ─► a process with the guest's cloud-config
//	            ◄─ ACTIVE when Boot returned, ERROR with its text when it failed
//
// It does not test Nova. Unknown requests get a 404 and are recorded, see Unknown.
package cloud

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Instance is a server in Nova.
type Instance struct {
	ID, Name, Project, Image, Flavor, Key string
	// UserData is the decoded user data that the machine reads.
	UserData []byte
	// Vendordata is the answer of the vendordata service, or nil if there is none.
	Vendordata map[string]any
	Metadata   map[string]string
	// Files are the files that the last rebuild wrote into the machine, by path.
	Files map[string][]byte
	// Addresses are the addresses of the instance's ports.
	Addresses []string

	status, fault string
	created       time.Time
	stop          func()
}

// A Boot function starts the guest of an instance and returns a function that ends it. It returns as soon as the
// machine is on, because that is all that Nova knows.
type Boot func(ctx context.Context, i Instance) (stop func(), err error)

// maxBody limits a request: user data has at most 64 KiB.
const maxBody = 1 << 20

// A Cloud is a running service. Its methods may be called concurrently.
type Cloud struct {
	server *http.Server
	addr   string
	ctx    context.Context
	cancel context.CancelFunc
	boots  sync.WaitGroup

	mu         sync.Mutex
	boot       Boot
	vendordata func(ctx context.Context, i Instance) (map[string]any, error)
	instances  map[string]*Instance
	ports      map[string]map[string]any
	volumes    map[string]map[string]any
	made       int // the number of ports ever created
	unknown    []string
	objects    string // the directory of Swift's objects
}

// Start starts a cloud on a free loopback port. Instances that are created before OnBoot are machines on which
// nothing runs.
func Start() (*Cloud, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the cloud: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cloud{addr: ln.Addr().String(), ctx: ctx, cancel: cancel, instances: map[string]*Instance{}, ports: map[string]map[string]any{},
		volumes: map[string]map[string]any{}}
	c.server = &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	go c.server.Serve(ln)
	return c, nil
}

// OnBoot sets the function that boots instances created from now on.
func (c *Cloud) OnBoot(b Boot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot = b
}

// OnVendordata sets the function that is called before an instance boots, as Nova calls a dynamic vendordata service.
// If it returns an error, the instance fails.
func (c *Cloud) OnVendordata(ask func(ctx context.Context, i Instance) (map[string]any, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vendordata = ask
}

// SetObjects makes the files container/name in a directory Swift's objects, in every account. Clients can only read
// their checksums.
func (c *Cloud) SetObjects(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = dir
}

// Endpoints returns the URLs of the services by their types in Keystone's catalog.
func (c *Cloud) Endpoints() map[string]string {
	u := "http://" + c.addr
	return map[string]string{"compute": u + "/v2.1", "network": u, "image": u, "volumev3": u + "/v3/%(tenant_id)s",
		"object-store": u + "/swift/v1/AUTH_%(tenant_id)s"}
}

// Instances returns the existing instances, by name.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Instance
	for _, i := range c.instances {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Instance) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Volumes returns the number of existing Cinder volumes.
func (c *Cloud) Volumes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.volumes)
}

// Ports returns the number of existing Neutron ports.
func (c *Cloud) Ports() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ports)
}

// Unknown returns the requests that were not understood, each once.
func (c *Cloud) Unknown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unknown)
}

// Close ends the service and all guests.
func (c *Cloud) Close() error {
	c.cancel()
	err := c.server.Close()
	c.boots.Wait()
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.instances))
	c.instances = map[string]*Instance{}
	c.mu.Unlock()
	for _, i := range all {
		if i.stop != nil {
			i.stop()
		}
	}
	return err
}

// uuid returns a random UUID.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if v != nil {
		json.NewEncoder(w).Encode(v)
	}
}

// fail sends an error in Nova's format; the clients of the other services read it too.
func fail(w http.ResponseWriter, code int, text string) {
	answer(w, code, map[string]any{"itemNotFound": map[string]any{"code": code, "message": text}})
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(v); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"badRequest": map[string]any{"code": 400, "message": err.Error()}})
		return false
	}
	return true
}

// create creates an instance and boots it.
func (c *Cloud) create(project string, spec createServer) (*Instance, error) {
	data, err := base64.StdEncoding.DecodeString(spec.UserData)
	if err != nil {
		return nil, fmt.Errorf("user_data: %w", err)
	}
	if len(spec.UserData) > 65535 {
		return nil, fmt.Errorf("user_data has %d bytes, 65535 are allowed", len(spec.UserData))
	}
	i := &Instance{ID: uuid(), Name: spec.Name, Project: project, Image: text(spec.Image), Flavor: text(spec.Flavor), Key: spec.Key,
		UserData: data, Metadata: spec.Metadata, status: "BUILD", created: time.Now()}
	c.mu.Lock()
	c.instances[i.ID] = i
	for _, n := range spec.networks() {
		p := c.ports[n.Port]
		if n.Network != "" {
			p = c.newPort(map[string]any{"network_id": n.Network, "device_owner": ownedByNova})
		}
		if p != nil {
			p["device_id"] = i.ID
			i.Addresses = append(i.Addresses, address(p))
		}
	}
	boot, ask, given := c.boot, c.vendordata, *i
	c.mu.Unlock()
	c.boots.Go(func() { c.start(i, given, boot, ask) })
	return i, nil
}

// start boots an instance. If the instance was deleted meanwhile, its guest is ended at once.
func (c *Cloud) start(i *Instance, given Instance, boot Boot, ask func(context.Context, Instance) (map[string]any, error)) {
	var stop func()
	var err error
	if ask != nil {
		given.Vendordata, err = ask(c.ctx, given)
		c.mu.Lock()
		i.Vendordata = given.Vendordata
		c.mu.Unlock()
	}
	if err == nil && boot != nil {
		stop, err = boot(c.ctx, given)
	}
	c.mu.Lock()
	i.stop, i.status = stop, "ACTIVE"
	if err != nil {
		i.status, i.fault = "ERROR", err.Error()
	}
	gone := c.instances[i.ID] == nil
	c.mu.Unlock()
	if gone && stop != nil {
		stop()
	}
}

// rebuild ends the guest of an instance and boots another with the image, files and user data of the request.
func (c *Cloud) rebuild(id string, request any) {
	spec, _ := request.(map[string]any)
	c.mu.Lock()
	i := c.instances[id]
	if i == nil {
		c.mu.Unlock()
		return
	}
	stop := i.stop
	i.stop, i.status, i.Image, i.Files = nil, "REBUILD", text(spec["imageRef"]), map[string][]byte{}
	files, _ := spec["personality"].([]any)
	for _, f := range files {
		f, _ := f.(map[string]any)
		i.Files[text(f["path"])], _ = base64.StdEncoding.DecodeString(text(f["contents"]))
	}
	if data, err := base64.StdEncoding.DecodeString(text(spec["user_data"])); err == nil && len(data) > 0 {
		i.UserData = data
	}
	boot, ask, given := c.boot, c.vendordata, *i
	c.mu.Unlock()
	c.boots.Go(func() {
		if stop != nil {
			stop()
		}
		c.start(i, given, boot, ask)
	})
}

// ownedByNova marks the ports that Nova creates, and deletes with the instance.
const ownedByNova = "compute:nova"

// remove ends the guest of an instance and deletes the instance.
func (c *Cloud) remove(id string) bool {
	c.mu.Lock()
	i := c.instances[id]
	delete(c.instances, id)
	maps.DeleteFunc(c.ports, func(_ string, p map[string]any) bool { return p["device_id"] == id && p["device_owner"] == ownedByNova })
	var stop func()
	if i != nil {
		stop = i.stop
	}
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	return i != nil
}

// Status returns Nova's status of the instance: BUILD, ACTIVE, ERROR and others.
func (i Instance) Status() string { return i.status }

// Fault returns the reason for the status ERROR.
func (i Instance) Fault() string { return i.fault }
