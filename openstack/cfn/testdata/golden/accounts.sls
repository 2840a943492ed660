#!yaml
cfn-0001 groups web:
  group.present:
  - name: web
  - gid: 2345
  - unless: getent group web
cfn-0002 groups ops:
  group.present:
  - name: ops
  - unless: getent group ops
  - require:
    - group: cfn-0001 groups web
cfn-0003 users web:
  user.present:
  - name: web
  - shell: /sbin/nologin
  - createhome: false
  - cmd_opts_exclude:
    - shell
  - groups:
    - ops
  - gid: web
  - unless: getent passwd web
  - require:
    - group: cfn-0002 groups ops
cfn-0004 users svc:
  user.present:
  - name: svc
  - shell: /sbin/nologin
  - createhome: false
  - cmd_opts_exclude:
    - shell
  - uid: 3456
  - home: /srv/svc
  - groups:
    - web
  - unless: getent passwd svc
  - require:
    - user: cfn-0003 users web
