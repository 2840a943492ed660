module github.com/brine-salt/brine/openstack

go 1.26.0

replace github.com/brine-salt/brine => ../
