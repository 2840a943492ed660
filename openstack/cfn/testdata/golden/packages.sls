#!yaml
cfn-0001 packages dpkg:
  pkg.installed:
  - sources:
    - tool: http://127.0.0.1/tool.deb
  - refresh: false
cfn-0002 packages apt:
  pkg.installed:
  - pkgs:
    - nginx
    - redis: 5:7.0-1
  - refresh: false
  - require:
    - pkg: cfn-0001 packages dpkg
cfn-0003 packages python/six:
  pip.installed:
  - name: six
  - env_vars:
      PIP_BREAK_SYSTEM_PACKAGES: '1'
  - require:
    - pkg: cfn-0002 packages apt
cfn-0004 packages python/pyyaml:
  pip.installed:
  - name: pyyaml==5.1
  - env_vars:
      PIP_BREAK_SYSTEM_PACKAGES: '1'
  - require:
    - pip: cfn-0003 packages python/six
cfn-0005 packages rubygems/rake:
  gem.installed:
  - name: rake
  - version: 13.0.1
  - require:
    - pip: cfn-0004 packages python/pyyaml
# warning: config.packages.msi is not a package manager that cfn-init knows; its packages are skipped
