package ini_manage

import (
	"context"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// presence is one run of ini.options_present.
type presence struct {
	*job
	ini           *pyobj.Dict // the file
	top, have     *pyobj.Dict // its options outside of sections, and its sections
	options, body *pyobj.Dict // those that are wanted
}

// divided takes the options out of a dict that are outside of sections.
func divided(d *pyobj.Dict) (top, sections *pyobj.Dict) {
	top, sections = &pyobj.Dict{}, &pyobj.Dict{}
	for k, v := range d.All() {
		if _, ok := v.(*pyobj.Dict); ok {
			_ = sections.Set(k, v)
		} else {
			_ = top.Set(k, v)
		}
	}
	return top, sections
}

func optionsPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	wanted := j.wanted()
	if wanted == nil {
		if !c.Test() {
			v, err := j.exec("set_option", map[string]any{"sections": c.Value("sections"), "no_spaces": c.Value("no_spaces")})
			if err != nil {
				return j.failed(err, true)
			}
			for k, x := range dict(v).All() {
				j.changes[pyobj.Str(k)] = pyobj.Plain(x)
			}
		}
		return j.finish()
	}
	d, ok := wanted.(*pyobj.Dict)
	if !ok {
		return nil, noDict(wanted, "items")
	}
	p := &presence{job: j}
	p.options, p.body = divided(d)
	v, err := j.exec("get_ini", nil)
	if err == nil {
		p.ini = dict(v)
		p.top, p.have = divided(p.ini)
		err = p.outside()
	}
	if err == nil && c.Bool("strict") {
		err = p.others()
	}
	for name, body := range p.body.All() {
		if err == nil {
			err = p.section(name, body.(*pyobj.Dict))
		}
	}
	if err != nil {
		return j.failed(err, true)
	}
	return j.finish()
}

// same reports whether an option has a value already, as text.
func same(have *pyobj.Dict, option, value any) bool {
	v, ok := have.Get(option)
	if !ok {
		v = "#-#-"
	}
	return pyobj.Str(v) == pyobj.Str(value)
}

// judge adds comments about what would happen to options.
func (p *presence) judge(options, have *pyobj.Dict, where string) {
	for option, value := range options.All() {
		if same(have, option, value) {
			p.say("Unchanged key ", pyobj.Str(option), where, ".\n")
		} else {
			p.would("Changed key ", pyobj.Str(option), where, ".\n")
		}
	}
}

// set sets options and gives what changed.
func (p *presence) set(sections *pyobj.Dict) (*pyobj.Dict, error) {
	v, err := p.exec("set_option", map[string]any{"sections": sections, "no_spaces": p.Value("no_spaces")})
	return dict(v), err
}

// outside has the options outside of sections.
func (p *presence) outside() error {
	if p.Test() {
		for option, value := range p.options.All() {
			if p.top.Has(option) && same(p.top, option, value) {
				p.say("Unchanged key ", pyobj.Str(option), ".\n")
			} else {
				p.would("Changed key ", pyobj.Str(option), ".\n")
			}
		}
		return nil
	}
	updated, err := p.set(p.options)
	for k, v := range updated.All() {
		p.changes[pyobj.Str(k)] = pyobj.Plain(v)
	}
	return err
}

// others removes options outside of sections and sections that are not wanted.
func (p *presence) others() error {
	for option, value := range p.top.All() {
		name := pyobj.Str(option)
		switch {
		case p.options.Has(option):
			continue
		case p.Test():
			p.would("Removed key ", name, ".\n")
			continue
		}
		if _, err := p.exec("remove_option", map[string]any{"section": nil, "option": option}); err != nil {
			return err
		}
		p.changes[name] = map[string]any{"before": pyobj.Plain(value), "after": nil}
	}
	for section, body := range p.have.All() {
		name := pyobj.Str(section)
		switch {
		case p.body.Has(section):
			continue
		case p.Test():
			p.would("Removed section ", name, ".\n")
			continue
		}
		if _, err := p.exec("remove_section", map[string]any{"section": section}); err != nil {
			return err
		}
		p.changes[name] = map[string]any{"before": pyobj.Plain(body), "after": nil}
	}
	return nil
}

// section has the options of a section.
func (p *presence) section(section any, body *pyobj.Dict) error {
	name, changes, have := pyobj.Str(section), map[string]any{}, dict(p.have.Value(section))
	if p.Bool("strict") {
		for option, value := range have.All() {
			switch {
			case body.Has(option):
				continue
			case p.Test():
				p.would("Deleted key ", pyobj.Str(option), within(section), ".\n")
				continue
			}
			if _, err := p.exec("remove_option", map[string]any{"section": section, "option": option}); err != nil {
				return err
			}
			changes[pyobj.Str(option)] = map[string]any{"before": pyobj.Plain(value), "after": nil}
		}
	}
	if p.Test() {
		p.judge(body, have, within(section))
		return nil
	}
	updated, err := p.set(pyobj.NewDict(section, body))
	if err != nil {
		return err
	}
	if updated.Len() > 0 {
		for k, v := range dict(updated.Value(section)).All() {
			changes[pyobj.Str(k)] = pyobj.Plain(v)
		}
	}
	if problem, ok := updated.Get("error"); ok {
		p.changes["error"] = pyobj.Plain(problem)
	}
	if len(changes) > 0 {
		p.changes[name] = changes
	}
	return nil
}

func optionsAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := begin(ctx, c)
	wanted := j.wanted()
	if wanted == nil {
		wanted = &pyobj.Dict{}
	}
	d, ok := wanted.(*pyobj.Dict)
	if !ok {
		return nil, noDict(wanted, "items")
	}
	if c.Test() {
		return j.tryAbsent(d)
	}
	for section, keys := range d.All() {
		for _, key := range names(keys) {
			v, err := j.exec("remove_option", map[string]any{"section": section, "option": key})
			if err != nil {
				return j.failed(err, false)
			}
			if !pyobj.Truth(v) {
				continue
			}
			name, value := pyobj.Str(section), pyobj.Plain(v)
			gone, _ := j.ret.Changes[name].(map[string]any)
			if gone == nil {
				gone = map[string]any{}
			}
			gone[pyobj.Str(key)] = value
			j.ret.Changes[name] = gone
			if _, ok := keys.(*pyobj.List); !ok {
				j.ret.Changes[name] = value
			}
			j.ret.Comment = "Changes take effect"
		}
	}
	return j.ret, nil
}

// tryAbsent implements options_absent in test mode.
func (j *job) tryAbsent(d *pyobj.Dict) (*states.Result, error) {
	for section, keys := range d.All() {
		v, err := j.exec("get_section", map[string]any{"section": section})
		if err != nil {
			if states.ErrorClass(err) != "AttributeError" {
				return j.failed(err, false)
			}
			v = section
		}
		list, ok := keys.(*pyobj.List)
		if !ok {
			name := pyobj.Str(section)
			v, err := j.exec("get_option", map[string]any{"section": nil, "option": section})
			switch {
			case err != nil:
				return nil, err
			case pyobj.Truth(v):
				j.would("Deleted key ", name, ".\n")
			default:
				j.say("Key ", name, " does not exist.\n")
			}
			continue
		}
		have, ok := pyobj.From(v).(*pyobj.Dict)
		if !ok && len(list.Items) > 0 {
			return nil, noDict(v, "get")
		}
		for _, key := range list.Items {
			if pyobj.Truth(have.Value(key)) {
				j.would("Deleted key ", pyobj.Str(key), within(section), ".\n")
			} else {
				j.say("Key ", pyobj.Str(key), within(section), " does not exist.\n")
			}
		}
	}
	if j.ret.Comment == "" {
		j.ret.Comment = "No changes detected."
	}
	return j.ret, nil
}
