// Package firewalld is Salt's execution module "firewalld". Salt's source: salt/modules/firewalld.py.
package firewalld

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return e.Which("firewall-cmd") != "", "The firewalld execution module cannot be loaded: the firewall-cmd binary is not in the path."
}

// run calls firewall-cmd with options that are split as a shell splits them, and returns what it printed.
func run(ctx context.Context, c *modules.Call, options string) (string, error) {
	r, err := saltcmd.Line(ctx, c, pytext.Str(path(c))+" "+options)
	if err != nil {
		return "", err
	}
	if r.Retcode != 0 {
		text := r.Stderr
		if text == "" {
			text = r.Stdout
		}
		return "", modules.Errorf("firewall-cmd failed: %s", text)
	}
	return r.Stdout, nil
}

// path returns the path of firewall-cmd, or None if it is not installed.
func path(c *modules.Call) any {
	if p := c.Which("firewall-cmd"); p != "" {
		return p
	}
	return nil
}

// value returns an argument in the form of Python's format.
func value(c *modules.Call, name string) string { return pytext.Str(c.Value(name)) }

// where adds to options which configuration the call is about.
func where(c *modules.Call, options string) string {
	if c.Bool("permanent") {
		options += " --permanent"
	}
	return options
}

// inZone returns options with the zone of the call, even if that is empty.
func inZone(c *modules.Call, options string) string {
	return where(c, "--zone="+value(c, "zone")+" "+options)
}

// inZoneOrDefault returns options with the zone of the call. Without one, firewall-cmd uses the default zone.
func inZoneOrDefault(c *modules.Call, options string) string {
	if c.Bool("zone") {
		options = "--zone=" + value(c, "zone") + " " + options
	}
	return where(c, options)
}

// words runs firewall-cmd and splits at white space what it prints.
func words(ctx context.Context, c *modules.Call, options string) ([]string, error) {
	out, err := run(ctx, c, options)
	return strings.Fields(out), err
}

// list is words as a result.
func list(ctx context.Context, c *modules.Call, options string) (any, error) {
	return modules.AnswerList(words(ctx, c, options))
}

// text is run as a result.
func text(ctx context.Context, c *modules.Call, options string) (any, error) {
	return modules.Answer(run(ctx, c, options))
}

// manage makes or deletes a zone or service and reloads the firewall if the call says so.
func manage(ctx context.Context, c *modules.Call, option string) (any, error) {
	out, err := text(ctx, c, option+" --permanent")
	if err == nil && c.Bool("restart") && out == "success" {
		return text(ctx, c, "--reload")
	}
	return out, err
}

func newZone(ctx context.Context, c *modules.Call) (any, error) {
	return manage(ctx, c, "--new-zone="+value(c, "zone"))
}

func deleteZone(ctx context.Context, c *modules.Call) (any, error) {
	return manage(ctx, c, "--delete-zone="+value(c, "zone"))
}

func newService(ctx context.Context, c *modules.Call) (any, error) {
	return manage(ctx, c, "--new-service="+value(c, "name"))
}

func deleteService(ctx context.Context, c *modules.Call) (any, error) {
	return manage(ctx, c, "--delete-service="+value(c, "name"))
}

func version(ctx context.Context, c *modules.Call) (any, error)     { return text(ctx, c, "--version") }
func reloadRules(ctx context.Context, c *modules.Call) (any, error) { return text(ctx, c, "--reload") }

func makePermanent(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, "--runtime-to-permanent")
}

func defaultZone(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, "--get-default-zone")
}

func setDefaultZone(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, "--set-default-zone="+value(c, "zone"))
}

func getZones(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, where(c, "--get-zones"))
}

func getServices(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, where(c, "--get-services"))
}

func getICMPTypes(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, where(c, "--get-icmptypes"))
}

func listZones(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(parse(ctx, c, where(c, "--list-all-zones")))
}

func listAll(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(parse(ctx, c, inZoneOrDefault(c, "--list-all")))
}

// parse runs firewall-cmd and reads the description of zones: a name at the left, indented "key: value" below it, and further
// values behind a tab.
func parse(ctx context.Context, c *modules.Call, options string) (map[string]any, error) {
	out, err := run(ctx, c, options)
	if err != nil {
		return nil, err
	}
	zones := map[string]any{}
	zone, key, named := "", "", false
	for _, line := range pytext.SplitLines(out, false) {
		if pytext.Strip(line) == "" {
			continue
		}
		if first := line[0] | 0x20; first >= 'a' && first <= 'z' || line[0] >= '0' && line[0] <= '9' {
			zone, named = pytext.StripRight(line), true
			continue
		}
		m, _ := zones[zone].(map[string]any)
		if line[0] == '\t' {
			have, ok := m[key].([]any)
			if !ok {
				return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(zone)}
			}
			m[key] = append(have, pytext.Strip(line))
			continue
		}
		k, v, ok := strings.Cut(line, ":")
		if !ok {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
		}
		if !named {
			return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'zone_name' where it is not associated with a value"}
		}
		if m == nil {
			m = map[string]any{}
			zones[zone] = m
		}
		key = pytext.Strip(k)
		m[key] = []any{pytext.Strip(v)}
	}
	return zones, nil
}

func listServices(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, inZoneOrDefault(c, "--list-services"))
}

func addService(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZoneOrDefault(c, "--add-service="+value(c, "service")))
}

func removeService(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZoneOrDefault(c, "--remove-service="+value(c, "service")))
}

// servicePort changes the ports of an existing service.
func servicePort(ctx context.Context, c *modules.Call, option string) (any, error) {
	have, err := words(ctx, c, "--get-services --permanent")
	if err != nil {
		return nil, err
	}
	if name, ok := c.Value("service").(string); !ok || !slices.Contains(have, name) {
		return nil, modules.Errorf("The service does not exist.")
	}
	return service(ctx, c, option+value(c, "port"))
}

func service(ctx context.Context, c *modules.Call, option string) (any, error) {
	return text(ctx, c, "--permanent --service="+value(c, "service")+" "+option)
}

func addServicePort(ctx context.Context, c *modules.Call) (any, error) {
	return servicePort(ctx, c, "--add-port=")
}

func removeServicePort(ctx context.Context, c *modules.Call) (any, error) {
	return servicePort(ctx, c, "--remove-port=")
}

func getServicePorts(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, "--permanent --service="+value(c, "service")+" --get-ports")
}

func addServiceProtocol(ctx context.Context, c *modules.Call) (any, error) {
	return service(ctx, c, "--add-protocol="+value(c, "protocol"))
}

func removeServiceProtocol(ctx context.Context, c *modules.Call) (any, error) {
	return service(ctx, c, "--remove-protocol="+value(c, "protocol"))
}

func getServiceProtocols(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, "--permanent --service="+value(c, "service")+" --get-protocols")
}

func getMasquerade(ctx context.Context, c *modules.Call) (any, error) {
	return masquerades(ctx, c, inZoneOrDefault(c, "--list-all"))
}

func masquerades(ctx context.Context, c *modules.Call, options string) (any, error) {
	zones, err := parse(ctx, c, options)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		state, ok := zone.(map[string]any)["masquerade"].([]any)
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'masquerade'"}
		}
		if state[0] == "no" {
			return false, nil
		}
	}
	return true, nil
}

func addMasquerade(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZoneOrDefault(c, "--add-masquerade"))
}

func removeMasquerade(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZoneOrDefault(c, "--remove-masquerade"))
}

// force makes the zone masquerade if the call says so; always permanently.
func force(ctx context.Context, c *modules.Call) error {
	if !c.Bool("force_masquerade") {
		return nil
	}
	zone := ""
	if c.Bool("zone") {
		zone = "--zone=" + value(c, "zone") + " "
	}
	is, err := masquerades(ctx, c, zone+"--list-all --permanent")
	if err == nil && is == false {
		_, err = run(ctx, c, zone+"--add-masquerade --permanent")
	}
	return err
}

func addPort(ctx context.Context, c *modules.Call) (any, error) {
	if err := force(ctx, c); err != nil {
		return nil, err
	}
	return text(ctx, c, inZone(c, "--add-port="+value(c, "port")))
}

func removePort(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZone(c, "--remove-port="+value(c, "port")))
}

func listPorts(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, inZone(c, "--list-ports"))
}

// forward returns a port forwarding in the syntax of firewall-cmd.
func forward(c *modules.Call) string {
	return "port=" + value(c, "src") + ":proto=" + value(c, "proto") + ":toport=" + value(c, "dest") + ":toaddr=" + value(c, "dstaddr")
}

func addPortFwd(ctx context.Context, c *modules.Call) (any, error) {
	if err := force(ctx, c); err != nil {
		return nil, err
	}
	return text(ctx, c, inZone(c, "--add-forward-port="+forward(c)))
}

func removePortFwd(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZone(c, "--remove-forward-port="+forward(c)))
}

func listPortFwd(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, inZone(c, "--list-forward-ports"))
	if err != nil {
		return nil, err
	}
	found := []any{}
	for _, line := range pytext.SplitLines(out, false) {
		// Salt gives up on addresses with colons as well.
		parts := strings.Split(line, ":")
		if len(parts) > 4 {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 4)"}
		}
		if len(parts) < 4 {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 4, got " + pytext.Str(len(parts)) + ")"}
		}
		rule := map[string]any{}
		for i, name := range [...]string{"Source port", "Protocol", "Destination port", "Destination address"} {
			value := strings.Split(parts[i], "=")
			if len(value) < 2 {
				return nil, modules.IndexError()
			}
			rule[name] = value[1]
		}
		found = append(found, rule)
	}
	return found, nil
}

// icmp blocks a kind of message or lets it through, if it is not so already.
func icmp(ctx context.Context, c *modules.Call, option string, block bool) (any, error) {
	kind, _ := c.Value("icmp").(string)
	known, err := words(ctx, c, where(c, "--get-icmptypes"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, kind) {
		c.Logger().Error("Invalid ICMP type")
		return false, nil
	}
	blocked, err := words(ctx, c, inZone(c, "--list-icmp-blocks"))
	if err != nil {
		return nil, err
	}
	if slices.Contains(blocked, kind) == block {
		return "success", nil
	}
	return text(ctx, c, inZone(c, option+kind))
}

func blockICMP(ctx context.Context, c *modules.Call) (any, error) {
	return icmp(ctx, c, "--add-icmp-block=", true)
}

func allowICMP(ctx context.Context, c *modules.Call) (any, error) {
	return icmp(ctx, c, "--remove-icmp-block=", false)
}

func listICMPBlock(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, inZone(c, "--list-icmp-blocks"))
}

// bind changes what is bound to a zone. Salt looks at what is bound first, only to note it in the log; errors of that are errors.
func bind(ctx context.Context, c *modules.Call, look, option string) (any, error) {
	if _, err := run(ctx, c, inZone(c, look)); err != nil {
		return nil, err
	}
	return text(ctx, c, inZone(c, option))
}

func getInterfaces(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, inZone(c, "--list-interfaces"))
}

func addInterface(ctx context.Context, c *modules.Call) (any, error) {
	return bind(ctx, c, "--list-interfaces", "--add-interface="+value(c, "interface"))
}

func removeInterface(ctx context.Context, c *modules.Call) (any, error) {
	return bind(ctx, c, "--list-interfaces", "--remove-interface="+value(c, "interface"))
}

func getSources(ctx context.Context, c *modules.Call) (any, error) {
	return list(ctx, c, inZone(c, "--list-sources"))
}

func addSource(ctx context.Context, c *modules.Call) (any, error) {
	return bind(ctx, c, "--list-sources", "--add-source="+value(c, "source"))
}

func removeSource(ctx context.Context, c *modules.Call) (any, error) {
	return bind(ctx, c, "--list-sources", "--remove-source="+value(c, "source"))
}

func getRichRules(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, inZone(c, "--list-rich-rules"))
	if err != nil {
		return nil, err
	}
	return nested.Anys(pytext.SplitLines(out, false)), nil
}

func addRichRule(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZone(c, "--add-rich-rule='"+value(c, "rule")+"'"))
}

func removeRichRule(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctx, c, inZone(c, "--remove-rich-rule='"+value(c, "rule")+"'"))
}
