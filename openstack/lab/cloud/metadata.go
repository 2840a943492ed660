package cloud

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Metadata returns the handler for 169.254.169.254: Nova's metadata service in OpenStack's format. As in Neutron, it
// identifies an instance by the address of the request.
func (c *Cloud) Metadata() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /openstack", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("2018-08-27\nlatest")) })
	m.HandleFunc("GET /openstack/{version}/{file}", func(w http.ResponseWriter, r *http.Request) {
		i, ok := c.instanceAt(r.RemoteAddr)
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch r.PathValue("file") {
		case "meta_data.json":
			meta := map[string]string{} // never null, because cloud-init reads its keys
			maps.Copy(meta, i.Metadata)
			answer(w, http.StatusOK, map[string]any{"uuid": i.ID, "name": i.Name, "hostname": i.Name + ".novalocal", "project_id": i.Project,
				"launch_index": 0, "availability_zone": "nova", "meta": meta})
		case "user_data":
			if len(i.UserData) == 0 {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Write(i.UserData)
		case "vendor_data2.json":
			data := map[string]any{"static": map[string]any{}}
			maps.Copy(data, i.Vendordata)
			answer(w, http.StatusOK, data)
		default:
			http.NotFound(w, r)
		}
	})
	// Nova also answers in EC2's format, and cloud-init requests both.
	m.HandleFunc("GET /latest/meta-data/{name...}", func(w http.ResponseWriter, r *http.Request) {
		i, ok := c.instanceAt(r.RemoteAddr)
		values := map[string]string{"hostname": i.Name + ".novalocal", "instance-id": ec2ID(i.ID), "local-ipv4": strings.Join(i.Addresses, ",")}
		name := r.PathValue("name")
		switch {
		case ok && name == "":
			w.Write([]byte(strings.Join(slices.Sorted(maps.Keys(values)), "\n")))
		case ok && values[name] != "":
			w.Write([]byte(values[name]))
		default:
			http.NotFound(w, r)
		}
	})
	return m
}

// ec2ID returns an instance id in EC2's format.
func ec2ID(id string) string { return "i-" + id[:min(8, len(id))] }

// instanceAt returns the instance that has the address in host:port.
func (c *Cloud) instanceAt(addr string) (Instance, bool) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return Instance{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		if slices.Contains(i.Addresses, host) {
			return *i, true
		}
	}
	return Instance{}, false
}
