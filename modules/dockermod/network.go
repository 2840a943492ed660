package dockermod

import (
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func (d *client) inspectNetwork(id any) (dict, error) {
	return d.dict("inspect_network", request{id: id})
}

func (d *client) networks() (any, error) {
	filters := dict{}
	for arg, key := range map[string]string{"names": "name", "ids": "id"} {
		if v := d.Value(arg); v != nil {
			if list := splitInput(v); len(list) > 0 {
				filters[key] = list
			}
		}
	}
	query, err := filtered(dict{}, filters)
	if err != nil {
		return nil, err
	}
	list, err := d.list("networks", request{query: query})
	ret := []any{}
	for _, m := range list {
		if full, err := d.inspectNetwork(m["Id"]); err == nil && len(get(full, "Containers")) > 0 {
			m["Containers"] = full["Containers"]
		}
		ret = append(ret, m)
	}
	return ret, err
}

func (d *client) createNetwork() (any, error) {
	kw, err := dockerargs.Network(d.keywords(), dockerargs.OptionsOf(d.Call))
	if err != nil {
		return nil, err
	}
	if _, ok := kw["ipam"]; !ok {
		pools, _ := pop(kw, "ipam_pools", nil).([]any)
		ipam := dict{}
		for k := range strings.FieldsSeq(dockerargs.IPAMArgs) {
			if v, ok := kw[k]; ok {
				ipam[k] = v
				delete(kw, k)
			}
		}
		if len(pools) > 0 || len(ipam) > 0 {
			if kw["ipam"], err = dockerargs.IPAM(pools, ipam); err != nil {
				return nil, err
			}
		}
	}
	body := dict{"Name": d.Value("name")}
	for _, k := range slices.Sorted(maps.Keys(kw)) {
		v, name := kw[k], ""
		switch k {
		case "driver":
			name = "Driver"
		case "options":
			name = "Options"
		case "ipam":
			name = "IPAM"
		case "check_duplicate":
			name = "CheckDuplicate"
		case "internal":
			name = "Internal"
		case "labels":
			name = "Labels"
		case "enable_ipv6":
			name = "EnableIPv6"
		case "attachable":
			name = "Attachable"
		case "scope":
			name = "Scope"
		case "ingress":
			name = "Ingress"
		default:
			return nil, unable("create_network", "NetworkApiMixin.create_network() got an unexpected keyword argument '"+k+"'")
		}
		if (k == "options" || k == "labels") && v != nil && dockerargs.Pairs(v) == nil && pytext.Truth(v) {
			return nil, unable("create_network", k+" must be a dictionary")
		}
		if v != nil && !((k == "internal" || k == "enable_ipv6") && !pytext.Truth(v)) {
			body[name] = v
		}
	}
	return d.dict("create_network", request{body: body})
}

func (d *client) connectContainer() (any, error) {
	return true, d.connectTo(d.Value("container"), d.Value("net_id"), d.keywords())
}

// connectTo connects a container to a network.
func (d *client) connectTo(container, network any, kw dict) error {
	const attr = "connect_container_to_network"
	name, err := resource(attr, container)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(kw)) {
		if !slices.Contains(dockerargs.ClientArgs()[attr].([]any), any(k)) {
			return unable(attr, "NetworkApiMixin."+attr+"() got an unexpected keyword argument '"+k+"'")
		}
	}
	conf, err := endpoint(kw)
	if err != nil {
		return unable(attr, err.Error())
	}
	_, err = d.call(attr, request{id: network, body: dict{"Container": name, "EndpointConfig": conf}})
	return err
}

func (d *client) disconnect(container, network any) error {
	const attr = "disconnect_container_from_network"
	name, err := resource(attr, container)
	if err == nil {
		_, err = d.call(attr, request{id: network, body: dict{"Container": name}})
	}
	return err
}

func (d *client) disconnectAll() (any, error) {
	id := d.Value("network_id")
	found, err := d.connected(id, false)
	if err != nil {
		return nil, err
	}
	gone, wrong := []any{}, []any{}
	for _, name := range found.([]any) {
		err := d.disconnect(name, id)
		switch {
		case err == nil:
			gone = append(gone, name)
		case !modules.IsExecError(err):
			return nil, err
		case !strings.Contains(err.Error(), "404"): // a container that is gone by now is no failure
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return nil, saltcmd.Problem("One or more containers failed to be removed", dict{"removed": gone, "errors": wrong})
	}
	return gone, nil
}

func (d *client) connected(name any, verbose bool) (any, error) {
	network, err := d.inspectNetwork(name)
	if err != nil {
		return nil, err
	}
	list, all := []any{}, dict{}
	containers := get(network, "Containers")
	for _, id := range slices.Sorted(maps.Keys(containers)) {
		m, _ := containers[id].(dict)
		name, ok := pop(m, "Name", nil).(string)
		if !ok {
			d.Logger().Warn("A container in a network has no name", "network", network["Name"], "container", id)
			continue
		}
		m["Id"] = id
		all[name] = m
		list = append(list, name)
	}
	if verbose {
		return all, nil
	}
	return list, nil
}

func (d *client) volumes() (any, error) {
	query, err := filtered(dict{}, d.Value("filters"))
	if err != nil {
		return nil, err
	}
	return d.call("volumes", request{query: query})
}

func (d *client) createVolume() (any, error) {
	body := dict{"Name": d.Value("name")}
	if v := d.Value("driver"); v != nil {
		body["Driver"] = v
	}
	if v := d.Value("driver_opts"); v != nil {
		if _, ok := v.(dict); !ok {
			return nil, unable("create_volume", "driver_opts must be a dictionary")
		}
		body["DriverOpts"] = v
	}
	return d.dict("create_volume", request{body: body})
}
