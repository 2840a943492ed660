package cfn

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxNested limits the nesting of configSets.
const maxNested = 32

// configNames returns the configurations to apply, in order.
func configNames(root node, selected string) ([]string, error) {
	sets, ok := root.child("configSets")
	if !ok || !pyobj.Truth(sets.v) {
		if selected != "" {
			return nil, fmt.Errorf("configSets %q are asked for, but the metadata has no configSets", selected)
		}
		return []string{"config"}, nil
	}
	if _, err := sets.entries(); err != nil {
		return nil, err
	}
	if selected == "" {
		selected = "default"
		if _, ok := sets.child(selected); !ok {
			return nil, fmt.Errorf("configSets has no set named default; name one with -c")
		}
	}
	var names []string
	for _, name := range strings.Split(selected, ",") {
		name = pytext.Strip(name)
		if _, ok := sets.child(name); !ok {
			return nil, fmt.Errorf("configSets has no set %q, which is asked for", name)
		}
		var err error
		if names, err = expandSet(sets, name, names, 0); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("configSets %q name no configuration", selected)
	}
	return names, nil
}

// expandSet appends the configurations of a set, and those of the sets that it includes.
func expandSet(sets node, name string, names []string, depth int) ([]string, error) {
	set, _ := sets.child(name)
	if depth > maxNested {
		return nil, set.wrong("names sets that name each other more than %d deep", maxNested)
	}
	list, err := set.items()
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if len(names) > maxSteps {
			return nil, set.wrong("names more than %d configurations", maxSteps)
		}
		if s, ok := item.v.(string); ok {
			names = append(names, s)
			continue
		}
		other, ok := item.child("ConfigSet")
		if d, isDict := item.v.(*pyobj.Dict); !ok || !isDict || d.Len() != 1 {
			return nil, item.wrong(`must be the name of a configuration or {"ConfigSet": name}`)
		}
		ref, err := other.text()
		if err != nil {
			return nil, err
		}
		if _, ok := sets.child(ref); !ok {
			return nil, other.wrong("names the set %q, which configSets does not have", ref)
		}
		if names, err = expandSet(sets, ref, names, depth+1); err != nil {
			return nil, err
		}
	}
	return names, nil
}
