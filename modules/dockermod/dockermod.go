// Package dockermod is Salt's execution module "docker": containers, images, networks and volumes of a Docker daemon
// (salt/modules/dockermod.py, with salt/utils/dockermod and what docker-py 7 does below it). It speaks Docker's HTTP API on the socket, or
// on tcp with or without TLS; neither docker-py nor the program docker is needed.
package dockermod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

type dict = map[string]any

// run runs a function of the module.
func run(ctx context.Context, c *modules.Call) (any, error) {
	_, fun, _ := strings.Cut(c.Fun, ".")
	if fun == "get_client_args" {
		return clientArgs(c), nil
	}
	d, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	v, err := d.run(fun)
	if err == nil && refreshes(fun) {
		d.refreshMine()
	}
	return v, err
}

func (d *client) run(fun string) (any, error) {
	name := d.Value("name")
	switch fun {
	case "build":
		return d.build()
	case "commit":
		return d.commit()
	case "compare_container", "compare_containers":
		return d.compareContainers()
	case "compare_container_networks":
		return d.compareContainerNetworks()
	case "compare_networks":
		return d.compareNetworks()
	case "connect_container_to_network":
		return d.connectContainer()
	case "connected":
		return d.connected(name, d.Bool("verbose"))
	case "copy_from", "cp":
		return d.copyFrom()
	case "copy_to":
		return d.copyTo(name, d.Value("source"), d.Str("dest"), d.Bool("overwrite"), d.Bool("makedirs"))
	case "create":
		return d.create()
	case "create_network":
		return d.createNetwork()
	case "create_volume":
		return d.createVolume()
	case "dangling":
		return d.dangling()
	case "depends":
		return d.depends(name)
	case "diff":
		return d.diff(name)
	case "disconnect_all_containers_from_network":
		return d.disconnectAll()
	case "disconnect_container_from_network":
		return true, d.disconnect(d.Value("container"), d.Value("network_id"))
	case "exists":
		_, err := d.inspectContainer(name)
		if status, _ := refusal(err); status != "" {
			return false, nil
		}
		return err == nil, err
	case "export":
		return d.export()
	case "history":
		return d.history(name)
	case "images":
		list, err := d.images(pytext.Truth(d.Keywords["all"]))
		if err != nil {
			return nil, err
		}
		return d.byID(list, d.Bool("verbose"), d.inspectImage)
	case "import":
		return d.importImage()
	case "info", "version":
		v, err := d.dict(fun, request{})
		if fun == "version" && err == nil {
			numbers(v, "Version")
			numbers(v, "ApiVersion")
		}
		return v, err
	case "inspect":
		return d.inspect(name)
	case "inspect_container":
		return d.inspectContainer(name)
	case "inspect_image":
		return d.inspectImage(name)
	case "inspect_network":
		return d.inspectNetwork(d.Value("network_id"))
	case "inspect_volume":
		return d.dict(fun, request{id: name})
	case "freeze", "pause":
		return d.changeUnless("stopped", "pause", "paused")
	case "kill":
		return d.change(name, "kill", "stopped", request{})
	case "layers":
		return d.layers(name)
	case "list_containers":
		return d.listContainers(pytext.Truth(d.Keywords["all"]))
	case "list_tags":
		return d.listTags()
	case "load":
		return d.load()
	case "login", "logout":
		return d.log(fun == "login")
	case "logs":
		return d.logs(name)
	case "networks":
		return d.networks()
	case "pid":
		info, err := d.inspectContainer(name)
		return get(info, "State")["Pid"], err
	case "port":
		return d.port()
	case "prune":
		return d.prune()
	case "ps":
		return d.ps()
	case "pull":
		return d.pull(d.Value("image"))
	case "push":
		return d.push()
	case "remove_network", "remove_volume":
		if fun == "remove_network" {
			name = d.Value("network_id")
		}
		_, err := d.call(fun, request{id: name})
		return err == nil, err
	case "rename":
		return d.rename()
	case "resolve_image_id":
		return d.resolveImage(name)
	case "resolve_tag":
		return d.resolveTag(name)
	case "restart":
		return d.restart()
	case "retcode", "run", "run_all", "run_stderr", "run_stdout":
		return d.runCommand(fun)
	case "rm":
		return d.rmKeywords()
	case "rmi":
		return d.rmi(d.Extra, pytext.Truth(d.Keywords["force"]), d.Keywords["prune"] == nil || pytext.Truth(d.Keywords["prune"]))
	case "run_container":
		return d.runContainer()
	case "save":
		return d.save()
	case "script", "script_retcode":
		return d.script(fun)
	case "search":
		return d.search()
	case "signal":
		_, err := d.call("kill", request{id: name, query: dict{"signal": d.Value("signal")}})
		return err == nil, err
	case "start":
		return d.start(name)
	case "state":
		return d.state(name)
	case "stop":
		return d.stop(name, d.Value("timeout"), pytext.Truth(d.Keywords["unpause"]))
	case "tag":
		return true, d.tag(name, d.Str("repository"), d.Str("tag"))
	case "top":
		return d.top(name)
	case "unfreeze", "unpause":
		return d.changeUnless("stopped", "unpause", "running")
	case "volumes":
		return d.volumes()
	case "wait":
		return d.wait(name)
	}
	return nil, &modules.NotAvailableError{Fun: d.Fun}
}

// refusal is like refused for an error that may be nil.
func refusal(err error) (status, explanation string) {
	if err == nil {
		return "", ""
	}
	return refused(err)
}

// refreshes reports whether a function changes what the mine contains about containers.
func refreshes(fun string) bool {
	switch fun {
	case "create", "run_container", "rm", "kill", "pause", "signal", "start", "stop", "unpause", "freeze", "unfreeze",
		"retcode", "run", "run_all", "run_stderr", "run_stdout", "script", "script_retcode":
		return true
	}
	return false
}

// refreshMine sends docker.ps to the mine, unless docker.update_mine is false. The function has done its work by then, so that an error is
// only logged.
func (d *client) refreshMine() {
	if v := option(d.Call, "docker.update_mine"); v != nil && !pytext.Truth(v) {
		return
	}
	if _, err := d.ExecKw(d.ctx, "mine.send", []any{"docker.ps"}, dict{"verbose": true, "all": true, "host": true}); err != nil {
		d.Logger().Warn("Cannot send the containers to the mine", "error", err)
	}
}

func clientArgs(c *modules.Call) any {
	all := dockerargs.ClientArgs()
	limit := c.Strings("limit")
	if len(limit) == 0 || limit[0] == "" {
		return all
	}
	maps.DeleteFunc(all, func(name string, _ any) bool { return !slices.Contains(limit, name) })
	return all
}

// get returns the dictionary at a key, or nil if it is missing.
func get(m dict, key string) dict { v, _ := m[key].(dict); return v }

// numbers adds the numbers of a version.
func numbers(m dict, key string) {
	text := pytext.Str(m[key])
	if end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		text = text[:end]
	}
	var list []any
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return
		}
		list = append(list, n)
	}
	m[key+"Info"] = list
}

// renamed converts the daemon's description of a container or an image to Salt's: with the time of creation in two
// forms.
func renamed(m dict) {
	if v, ok := m["Created"]; ok {
		delete(m, "Created")
		m["Time_Created_Epoch"] = v
		if n, err := modules.ToInt(v); err == nil {
			m["Time_Created_Local"] = localTime(n)
		}
	}
}

func localTime(n int64) string { return time.Unix(n, 0).Format("2006-01-02 15:04:05 MST") }

// human adds sizes as people read them.
func human(m dict, keys ...string) {
	for _, key := range keys {
		if v, ok := m[key]; ok {
			m[key+"_Human"] = sizeText(v)
		}
	}
}

func sizeText(v any) any {
	n, err := modules.ToInt(v)
	if err != nil {
		return "unknown"
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	f := float64(n)
	for _, unit := range [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if f /= 1024; f < 1024 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return nil
}

// elapsed returns the seconds since a time.
func (d *client) elapsed(since time.Time) float64 { return d.Now().Sub(since).Seconds() }

// invalid returns the error for unknown keyword arguments, or nil if all are known.
func invalid(kw dict) error {
	if len(kw) == 0 {
		return nil
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(kw)) {
		list = append(list, k+"="+pytext.Str(kw[k]))
	}
	return modules.Usagef("The following keyword arguments are not valid: %s", strings.Join(list, ", "))
}

// keywords returns the keyword arguments without the fields of the job.
func (d *client) keywords() dict {
	kw := dict{}
	for k, v := range d.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = v
		}
	}
	return kw
}

// pop takes an entry out of a dictionary.
func pop(m dict, key string, other any) any {
	v, ok := m[key]
	if !ok {
		return other
	}
	delete(m, key)
	return v
}

// byID returns entries by their Id. With verbose each entry includes the result of inspect.
func (d *client) byID(list []dict, verbose bool, inspect func(any) (dict, error)) (dict, error) {
	out := dict{}
	for _, m := range list {
		id := pop(m, "Id", "").(string)
		if verbose {
			info, err := inspect(id)
			if err != nil {
				return nil, err
			}
			m["Info"] = info
		}
		out[id] = m
	}
	return out, nil
}

// splitInput returns the elements of a list, or the parts of a text between commas (salt.utils.args split_input).
func splitInput(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	out := []any{}
	for s := range strings.SplitSeq(pytext.Str(v), ",") {
		out = append(out, pytext.Strip(s))
	}
	return out
}
