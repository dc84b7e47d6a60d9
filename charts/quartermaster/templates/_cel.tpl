{{- /*
The rules of docs/declarations.md in CEL, as the variables of an admission policy. reconcilers/declarations/evaluate.cpp has the
same rules and the same messages in C++; test/admission compares the two. `params` is the ResourceRules object. Nearly everything
is dyn, because the same text reads pods and the templates of five kinds, and because a map may hold values of one type only.

Nothing here walks all declared keys. Only the keys that the pod names are read, so the cost does not grow with the number of
declarations. Maps have no order, so the keys of a container are sorted where they are first collected.

  spec        the pod spec
  about       {annotations, labels} of the pod
  containers  [{at, limits, requests}], init containers first; `at` is the container's name in a message, or its path for a patch
  named       the containers that name a declared key, and the keys: {..., keys: sorted}
  users       the containers that ask for more than zero of a declared key: {..., asked: sorted keys}
  judged      users after filling in: {at, limits, used: sorted keys including the filled-in ones, uses: [{key, amount, rule}]}
  unequal, broken, together    texts of what is wrong, or empty: with requests, with a container alone, with the pod as a whole
  refusals    all three in one text                      advice    the same for warnings

`fits`, `sound` and `apart` (booleans, at the end of this file) decide which pod is refused. `fits` bounds their cost, so the server
never gives up on them. If it did, failurePolicy Ignore would accept the pod. The texts may cost more than the server allows for an
expression. Then the policy's fixed message is shown instead.

Kubernetes 1.30 has no sort, no flatten and no index in a comprehension. So a list of up to sixteen keys is sorted by the rank of
each key, and a longer one by the list of all keys. Lists of keys are flattened as text, and `[x].map(y, ...)[0]` gives x a name.
*/}}
{{- define "quartermaster.cel.sorted" -}}
dyn(size({{ . }}) < 2 ? {{ . }} : size({{ . }}) > 16 ? dyn(params.spec.keys.filter(k, k in {{ . }})) :
dyn([{{ . }}.map(k, {{ . }}.filter(o, o < k).size())].map(ranks, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].filter(i,
i < size({{ . }})).map(i, {{ . }}[ranks.indexOf(i)]))[0]))
{{- end }}

{{- /* The text `.` as a whole number. Kubernetes accepts more than an int64 holds (1e30); here, as in C++, that becomes the largest
int64. Kubernetes refuses a fraction afterwards. */}}
{{- define "quartermaster.cel.whole" -}}
(quantity({{ . }}).isInteger() ? quantity({{ . }}).asInteger() : 9223372036854775807)
{{- end }}

{{- /* Both take a list of an amount above zero and the amounts that a device plugin accepts (quota/resource_keys.hpp). `legal`:
whether the amount is accepted. `nearest`: the accepted amount nearest to it; if two are equally near, the smaller one. */}}
{{- define "quartermaster.cel.legal" -}}
{{- $a := index . 0 }}{{ $of := index . 1 -}}
(({{ $a }} >= {{ $of }}.from && {{ $a }} <= {{ $of }}.to && ({{ $a }} - {{ $of }}.from) % {{ $of }}.step == 0) || (has({{ $of }}.whole) && {{ $a }} % {{ $of }}.whole == 0))
{{- end }}
{{- define "quartermaster.cel.nearest" -}}
{{- $a := index . 0 }}{{ $of := index . 1 -}}
has({{ $of }}.whole) && {{ $a }} > {{ $of }}.whole
? {{ $a }} - {{ $a }} % {{ $of }}.whole + ({{ $a }} % {{ $of }}.whole <= {{ $of }}.whole / 2 ? 0 : {{ $of }}.whole)
: {{ $a }} < {{ $of }}.from ? {{ $of }}.from
: {{ $a }} > {{ $of }}.to ? (has({{ $of }}.whole) && {{ $of }}.whole - {{ $a }} < {{ $a }} - {{ $of }}.to ? {{ $of }}.whole : {{ $of }}.to)
: {{ $of }}.from + ({{ $a }} - {{ $of }}.from + {{ $of }}.step / 2) / {{ $of }}.step * {{ $of }}.step
{{- end }}

{{- /* {annotations, labels} of the pod. The expression `.` is its metadata. */}}
{{- define "quartermaster.cel.about" -}}
{'annotations': has({{ . }}.annotations) ? dyn({{ . }}.annotations) : dyn({}), 'labels': has({{ . }}.labels) ? dyn({{ . }}.labels) : dyn({})}
{{- end }}

{{- /* Takes [{annotations, labels}, a pod amount (quota/resource_keys.hpp), the limits of a container, its amount of the key]. Whether
the pod's annotation or label is wrong. A limit with the same name wins. The length is checked first, because an annotation may
have 256 KiB. */}}
{{- define "quartermaster.cel.pod_amount_wrong" -}}
{{- $about := index . 0 }}{{ $of := index . 1 }}{{ $limits := index . 2 }}{{ $a := index . 3 -}}
(!({{ $of }}.name in {{ $limits }} && sign(quantity({{ $limits }}[{{ $of }}.name])) > 0) &&
[{{ $of }}.label ? {{ $about }}.labels : {{ $about }}.annotations].exists(texts, {{ $of }}.name in texts &&
!({{ include "quartermaster.cel.pod_number" (printf "texts[%s.name]" $of) }} && [int(texts[{{ $of }}.name])].exists(n,
n >= (has({{ $of }}.from) ? {{ $of }}.from : {{ $a }}) && (n <= {{ $a }} || (has({{ $of }}.to) && n <= {{ $of }}.to)) &&
!(has({{ $of }}.divides) && {{ $of }}.divides && {{ $a }} % n != 0)))))
{{- end }}
{{- define "quartermaster.cel.pod_number" -}}
(size({{ . }}) <= 10 && {{ . }}.matches('^[1-9][0-9]*$'))
{{- end }}

{{- /* The number of limits of the containers in the list `.`. */}}
{{- define "quartermaster.cel.limits" -}}
{{ . }}.map(c, has(c.resources) && has(c.resources.limits) ? size(c.resources.limits) : 0).sum()
{{- end }}

{{- /* Whether a container in the list `.` names a declared key. */}}
{{- define "quartermaster.cel.names" -}}
{{ . }}.exists(c, has(c.resources) && ((has(c.resources.limits) && c.resources.limits.exists(k, k in params.spec.rules)) ||
(has(c.resources.requests) && c.resources.requests.exists(k, k in params.spec.rules))))
{{- end }}

{{- /* So many that not even the names are read. Such a pod has no purpose except to use up the server's budget. */}}
{{- define "quartermaster.cel.monstrous" -}}
(size({{ . }}) > 1024 || {{ include "quartermaster.cel.limits" . }} > 32768)
{{- end }}

{{- /* Whether the containers in the list `.` have more than is judged. The cost grows with the number of limits, and for each
declared key with the members of its group. */}}
{{- define "quartermaster.cel.too_many" -}}
(size({{ . }}) > 256 || {{ include "quartermaster.cel.limits" . }} > 2048 ||
{{ . }}.map(c, has(c.resources) && has(c.resources.limits) ? c.resources.limits.map(k, k in params.spec.rules && has(params.spec.rules[k].group) &&
params.spec.rules[k].group in params.spec.groups ? size(params.spec.groups[params.spec.rules[k].group]) : 0).sum() : 0).sum() > 16384)
{{- end }}
{{- define "quartermaster.cel.too_many_text" -}}
'the pod has more than 256 containers or 2048 limits, or uses too many keys that exclude others or belong to large groups: more than is judged'
{{- end }}

{{- /* The keys above zero in the list of maps of limits `.` that take part in exclusions, each once. If more keys take part than the
operator lists (reconcilers/declarations/compiled.cpp, `max_exclusive`): all keys above zero, as often as they are named. */}}
{{- define "quartermaster.cel.used" -}}
(has(params.spec.exclusive) ? dyn(params.spec.exclusive.filter(x, {{ . }}.exists(d, x in d && sign(quantity(d[x])) > 0))) :
dyn({{ . }}.map(d, d.filter(k, k.contains('/') && sign(quantity(d[k])) > 0).join(' ')).filter(s, s != '').join(' ').split(' ')))
{{- end }}
{{- /* Both take the list of used keys `.`. `too_many_pairs`: it has more pairs than are compared. `conflict`: it has two keys that
must not be in one pod. */}}
{{- define "quartermaster.cel.too_many_pairs" -}}
({{ . }}.map(k, k in params.spec.rules && has(params.spec.rules[k].excluded) ? size(params.spec.rules[k].excluded) : 0).sum() * size({{ . }}) > 400000)
{{- end }}
{{- define "quartermaster.cel.conflict" -}}
{{ . }}.exists(k, k in params.spec.rules && has(params.spec.rules[k].excluded) && params.spec.rules[k].excluded.exists(x, x in {{ . }}))
{{- end }}

{{- define "quartermaster.cel.amounts" -}}
'limits': dyn(has(c.resources) && has(c.resources.limits) ? dyn(c.resources.limits) : dyn({})),
'requests': dyn(has(c.resources) && has(c.resources.requests) ? dyn(c.resources.requests) : dyn({}))
{{- end }}

{{- /* Whether key `k` of container `c` is the first of its group in the list `.`, for a group with required or filled-in keys. */}}
{{- define "quartermaster.cel.first" -}}
has(params.spec.rules[k].group) && params.spec.rules[k].group in params.spec.groups &&
params.spec.groups[params.spec.rules[k].group].filter(m, m in {{ . }}).indexOf(k) == 0
{{- end }}

{{- /* The keys to fill into container `c`, given what it asks for. */}}
{{- define "quartermaster.cel.fills" -}}
[c.asked.filter(k, {{- include "quartermaster.cel.first" "c.asked" | nindent 10 }}).map(k,
  params.spec.groups[params.spec.rules[k].group].filter(m, m in params.spec.rules && has(params.spec.rules[m].fill) &&
    !(m in c.limits) && !(m in c.requests)).join(' ')).filter(s, s != '').join(' ').split(' ').filter(s, s != '')].map(all, all.filter(m,
  !(has(params.spec.rules[m].waivedBy) && (params.spec.rules[m].waivedBy in c.limits
    ? {{ include "quartermaster.cel.whole" "c.limits[params.spec.rules[m].waivedBy]" }} >= params.spec.rules[m].waivedFrom
    : params.spec.rules[m].waivedBy in all && int(params.spec.rules[params.spec.rules[m].waivedBy].fill) >= params.spec.rules[m].waivedFrom))))[0]
{{- end }}

{{- define "quartermaster.cel.containers" -}}
- {name: all, expression: {{ include "quartermaster.cel.all" "variables.spec" | quote }}}
- name: containers
  expression: >-
    (has(variables.spec.initContainers) ? dyn(variables.spec.initContainers.map(c, {
      'at': dyn('init container ' + c.name), {{- include "quartermaster.cel.amounts" . | nindent 6 }}})) : dyn([])) +
    dyn(variables.spec.containers.map(c, {
      'at': dyn('container ' + c.name), {{- include "quartermaster.cel.amounts" . | nindent 6 }}}))
{{- end }}

{{- define "quartermaster.cel.users" -}}
- name: named
  expression: >-
    variables.containers.map(c, {
      'at': dyn(c.at), 'limits': dyn(c.limits), 'requests': dyn(c.requests),
      'keys': dyn([c.limits.filter(k, k in params.spec.rules) + c.requests.filter(k, k in params.spec.rules && !(k in c.limits))].map(all,
        {{- include "quartermaster.cel.sorted" "all" | nindent 8 }})[0])
    }).filter(c, size(c.keys) > 0)
- name: users
  expression: >-
    variables.named.map(c, {
      'at': dyn(c.at), 'limits': dyn(c.limits), 'requests': dyn(c.requests),
      'asked': dyn(c.keys.filter(k, k in c.limits && sign(quantity(c.limits[k])) > 0))
    }).filter(c, size(c.asked) > 0)
{{- end }}

{{- /* `.`: a CEL expression that says whether absent keys will still be filled in. Empty: no. */}}
{{- define "quartermaster.cel.judged" -}}
- name: judged
  expression: >-
    variables.users.map(c, {
      'at': dyn(c.at), 'limits': dyn(c.limits), 'requests': dyn(c.requests),
      'used': {{ if . }}dyn(!({{ . }}) ? dyn(c.asked) : dyn([
        {{- include "quartermaster.cel.fills" . | nindent 6 }}].map(f, size(f) == 0 ? dyn(c.asked) : dyn([c.asked + f].map(all,
        {{- include "quartermaster.cel.sorted" "all" | nindent 8 }})[0]))[0])){{ else }}dyn(c.asked){{ end }}
    }).map(c, {
      'at': dyn(c.at), 'limits': dyn(c.limits), 'requests': dyn(c.requests), 'used': dyn(c.used),
      'uses': dyn(c.used.map(k, {
        'key': dyn(k), 'rule': dyn(params.spec.rules[k]),
        'amount': dyn({{ if . }}!(k in c.limits) ? int(params.spec.rules[k].fill) : {{ end }}{{ include "quartermaster.cel.whole" "c.limits[k]" }})}))
    })
{{- end }}

{{- /* `.`: as above. */}}
{{- define "quartermaster.cel.refusals" -}}
- name: held
  expression: variables.all.filter(c, has(c.resources) && has(c.resources.limits)).map(c, c.resources.limits)
- {name: used, expression: {{ include "quartermaster.cel.used" "variables.held" | quote }}}
- name: fits
  expression: >-
    !{{ include "quartermaster.cel.monstrous" "variables.all" | nindent 4 }} && !{{ include "quartermaster.cel.too_many" "variables.all" | nindent 4 }} &&
    !{{ include "quartermaster.cel.too_many_pairs" "variables.used" }}
- name: unequal
  expression: >-
    variables.named.map(c, c.keys.filter(k, k in c.requests &&
        !(k in c.limits && quantity(c.limits[k]).compareTo(quantity(c.requests[k])) == 0)).map(k,
      c.at + ': the request of ' + k + ' is ' + string({{ include "quartermaster.cel.whole" "c.requests[k]" }}) + ', its limit ' +
      (k in c.limits ? string({{ include "quartermaster.cel.whole" "c.limits[k]" }}) : '0') +
      '; Kubernetes wants both equal for such a resource: set the limit and leave the request out').join('; '))
    .filter(s, s != '').join('; ')
- name: broken
  expression: >-
    variables.judged.map(c, (
      c.uses.map(u,
        has(u.rule.forbidden) && u.rule.forbidden
          ? c.at + ': ' + u.key + ' is ' + string(u.amount) + ', but must not be set (ConfigMap ' + u.rule.source + ')'
        : has(u.rule.amounts) && !{{ include "quartermaster.cel.legal" (list "u.amount" "u.rule.amounts") }}
          ? c.at + ': ' + u.key + ' is ' + string(u.amount) + '; allowed are ' + u.rule.amounts.words + ', nearest ' +
            string({{ include "quartermaster.cel.nearest" (list "u.amount" "u.rule.amounts") | nindent 12 }})
        : !has(u.rule.partner) || (has(u.rule.amounts) && has(u.rule.amounts.whole) && u.amount >= u.rule.amounts.whole) ||
          u.rule.partner in c.used || (u.rule.partner in c.limits && sign(quantity(c.limits[u.rule.partner])) > 0) {{- if not . }} ||
          (!(u.rule.partner in c.limits) && u.rule.partner in params.spec.rules && has(params.spec.rules[u.rule.partner].absentPasses) &&
            params.spec.rules[u.rule.partner].absentPasses){{ end }}
        ? (!has(u.rule.podAmount) || u.rule.podAmount.name in c.used || !{{ include "quartermaster.cel.pod_amount_wrong" (list "variables.about" "u.rule.podAmount" "c.limits" "u.amount") | nindent 12 }}
          ? ''
          : c.at + (u.rule.podAmount.label ? ': label ' : ': annotation ') + u.rule.podAmount.name + ' is ' +
            [(u.rule.podAmount.label ? variables.about.labels : variables.about.annotations)[u.rule.podAmount.name]].map(text,
              {{ include "quartermaster.cel.pod_number" "text" }} ? text : 'no whole number from 1')[0] +
            ', with ' + u.key + ' ' + string(u.amount) + '; allowed are ' + u.rule.podAmount.words)
        : c.at + ': ' + u.key + ' is ' + string(u.amount) + (has(u.rule.amounts) && has(u.rule.amounts.whole)
          ? ', a share of a card, and needs ' + u.rule.partner + ' beside it; ' + string(u.rule.amounts.whole) + ' is a whole card and needs none'
          : ' and needs ' + u.rule.partner + ' beside it')) +
      c.used.filter(k, {{- include "quartermaster.cel.first" "c.used" | nindent 10 }}).map(k,
        params.spec.groups[params.spec.rules[k].group].filter(m, m in params.spec.rules &&
            has(params.spec.rules[m].must) && params.spec.rules[m].must && !(m in c.used) && !(m in c.requests && !(m in c.limits)) &&
            {{- if not . }} !(has(params.spec.rules[m].absentPasses) && params.spec.rules[m].absentPasses && !(m in c.limits)) &&{{ end }}
            !(has(params.spec.rules[m].waivedBy) && {{- include "quartermaster.cel.waived" . | nindent 10 }})).map(m,
          c.at + ': ' + m + ' must be set to 1 or more beside ' + k + ' (ConfigMap ' + params.spec.rules[m].source + ')').join('; '))
    ).filter(s, s != '').join('; ')).filter(s, s != '').join('; ')
- name: together
  expression: >-
    variables.judged.map(c, c.uses.filter(u, has(u.rule.excluded)).map(u,
      u.rule.excluded.filter(x, (!(x in params.spec.rules) || u.key < x) && (
          variables.containers.exists(d, x in d.limits && sign(quantity(d.limits[x])) > 0)
          {{- if . }} || variables.judged.exists(d, x in d.used){{ end }})).map(x,
        c.at + ': ' + u.key + ' is ' + string(u.amount) + ', which must not be in one pod with ' + x + ' (ConfigMap ' + u.rule.source + ')')
      .join('; ')).filter(s, s != '').join('; ')).filter(s, s != '').join('; ')
- name: refusals
  expression: "[variables.unequal, variables.broken, variables.together].filter(s, s != '').join('; ')"
{{- end }}

{{- /* Whether container `c` asks for whole cards by the key that waives key `m`. */}}
{{- define "quartermaster.cel.waived" -}}
(params.spec.rules[m].waivedBy in c.limits
  ? {{ include "quartermaster.cel.whole" "c.limits[params.spec.rules[m].waivedBy]" }} >= params.spec.rules[m].waivedFrom
  : {{ if . }}params.spec.rules[m].waivedBy in c.used && int(params.spec.rules[params.spec.rules[m].waivedBy].fill) >= params.spec.rules[m].waivedFrom{{ else }}false{{ end }})
{{- end }}

{{- /* `.`: as above. */}}
{{- define "quartermaster.cel.advice" -}}
- name: advice
  expression: >-
    variables.judged.map(c, c.uses.map(u, ((has(u.rule.related)
        ? u.rule.related.filter(m, m in params.spec.rules && !(m in c.used) &&
            !(has(u.rule.partner) && m == u.rule.partner && !(has(u.rule.amounts) && has(u.rule.amounts.whole) && u.amount >= u.rule.amounts.whole) &&
              !(has(u.rule.forbidden) && u.rule.forbidden)) &&
            !(has(params.spec.rules[m].waivedBy) && {{- include "quartermaster.cel.waived" . | nindent 10 }}) &&
            !(has(params.spec.rules[m].must) && params.spec.rules[m].must && has(params.spec.rules[m].group) &&
              has(u.rule.group) && params.spec.rules[m].group == u.rule.group)).map(m,
            c.at + ': ' + u.key + ' usually goes with ' + m + ', which is not set (ConfigMap ' + u.rule.source + ')')
        : []) + [has(u.rule.notOffered) && u.rule.notOffered && !(has(u.rule.forbidden) && u.rule.forbidden)
          ? c.at + ': no node offers ' + u.key + ' now, so the pod waits until one does (ConfigMap ' + u.rule.source + ')'
          : '']).filter(s, s != '').join('; ')).filter(s, s != '').join('; ')).filter(s, s != '').join('; ')
{{- end }}

{{- /* The list of all containers of the pod spec `.`, a CEL expression. */}}
{{- define "quartermaster.cel.all" -}}
(dyn({{ . }}).containers + (has(dyn({{ . }}).initContainers) ? dyn({{ . }}).initContainers : []))
{{- end }}

{{- /*
Match conditions: a cheap check whether anything can be wrong, worth a warning, or absent. The variables above cost the server up to
a fifth of creating a pod, so they are computed only after this check. It may say yes too often, but never no too often. The same
tests check that.

`spec`: the pod spec to check; `metadata`: the pod's metadata; `fills`: whether keys that will be filled in count.
*/}}
{{- define "quartermaster.cel.suspect" -}}
[{{ include "quartermaster.cel.all" .spec }}].exists(all, {{ include "quartermaster.cel.monstrous" "all" }} ||
({{ include "quartermaster.cel.names" "all" }} && (size(all) > 16 || {{ include "quartermaster.cel.limits" "all" }} > 128 ||
{{ include "quartermaster.cel.too_many" "all" }} || [{{ include "quartermaster.cel.about" .metadata }}].exists(about, {{ include "quartermaster.cel.wrong" (dict "all" "all" "about" "about" "fills" .fills) }}) ||
[all.filter(c, has(c.resources) && has(c.resources.limits)).map(c, c.resources.limits)].exists(held,
[{{ include "quartermaster.cel.used" "held" }}].exists(used, {{ include "quartermaster.cel.too_many_pairs" "used" }} ||
{{ include "quartermaster.cel.conflict" "used" }})))))
{{- end }}

{{- /* Whether a container in the list `.all` is wrong by itself, in a pod with `.about`. `.fills`: keys that will be filled in count
as absent. */}}
{{- define "quartermaster.cel.wrong" -}}
{{ .all }}.exists(c, has(c.resources) && (
(has(c.resources.limits) && c.resources.limits.exists(k, k in params.spec.rules && sign(quantity(c.resources.limits[k])) > 0 && [params.spec.rules[k]].exists(r,
  (has(r.forbidden) && r.forbidden) ||
  (has(r.amounts) && !{{ include "quartermaster.cel.legal" (list (include "quartermaster.cel.whole" "c.resources.limits[k]") "r.amounts") }}) ||
  (has(r.partner) && !(has(r.amounts) && has(r.amounts.whole) && {{ include "quartermaster.cel.whole" "c.resources.limits[k]" }} >= r.amounts.whole) &&
    !(r.partner in c.resources.limits{{ if .fills }} && sign(quantity(c.resources.limits[r.partner])) > 0){{ else }}
    ? sign(quantity(c.resources.limits[r.partner])) > 0
    : r.partner in params.spec.rules && has(params.spec.rules[r.partner].absentPasses) && params.spec.rules[r.partner].absentPasses){{ end }}) ||
  (has(r.podAmount) && {{ include "quartermaster.cel.pod_amount_wrong" (list .about "r.podAmount" "c.resources.limits" (include "quartermaster.cel.whole" "c.resources.limits[k]")) }}) ||
  (has(r.group) && r.group in params.spec.groups && params.spec.groups[r.group].exists(m, m in params.spec.rules &&
    ((has(params.spec.rules[m].must) && params.spec.rules[m].must){{ if .fills }} || has(params.spec.rules[m].fill){{ end }}) &&
    !(m in c.resources.limits && sign(quantity(c.resources.limits[m])) > 0){{ if not .fills }} &&
    !(has(params.spec.rules[m].absentPasses) && params.spec.rules[m].absentPasses && !(m in c.resources.limits)) &&
    !(has(params.spec.rules[m].waivedBy) && params.spec.rules[m].waivedBy in c.resources.limits &&
      {{ include "quartermaster.cel.whole" "c.resources.limits[params.spec.rules[m].waivedBy]" }} >= params.spec.rules[m].waivedFrom){{ end }}))))) ||
(has(c.resources.requests) && c.resources.requests.exists(k, k in params.spec.rules &&
  !(has(c.resources.limits) && k in c.resources.limits && (c.resources.limits[k] == c.resources.requests[k] ||
    quantity(c.resources.limits[k]).compareTo(quantity(c.resources.requests[k])) == 0))))))
{{- end }}

{{- define "quartermaster.cel.worth_saying" -}}
[{{ include "quartermaster.cel.all" . }}].exists(all, !{{ include "quartermaster.cel.monstrous" "all" }} && all.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k, k in params.spec.rules && [params.spec.rules[k]].exists(r,
  (has(r.notOffered) && r.notOffered) || (has(r.related) && r.related.exists(m, m in params.spec.rules &&
    !(m in c.resources.limits && sign(quantity(c.resources.limits[m])) > 0)))))) &&
!{{ include "quartermaster.cel.too_many" "all" }})
{{- end }}

{{- define "quartermaster.cel.lacking" -}}
[{{ include "quartermaster.cel.all" . }}].exists(all, !{{ include "quartermaster.cel.monstrous" "all" }} && all.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k, k in params.spec.rules && [params.spec.rules[k]].exists(r,
  (has(r.runtimeClassName) && !(has(dyn({{ . }}).runtimeClassName) && dyn({{ . }}).runtimeClassName != '')) ||
  (has(r.group) && r.group in params.spec.groups && params.spec.groups[r.group].exists(m, m in params.spec.rules && has(params.spec.rules[m].fill) &&
    !(m in c.resources.limits) && !(has(params.spec.rules[m].waivedBy) && params.spec.rules[m].waivedBy in c.resources.limits &&
      {{ include "quartermaster.cel.whole" "c.resources.limits[params.spec.rules[m].waivedBy]" }} >= params.spec.rules[m].waivedFrom)))))) &&
!{{ include "quartermaster.cel.too_many" "all" }})
{{- end }}

{{- /* Whether the text `.` is a legal name of an extended resource: text/resource_name.cpp. */}}
{{- define "quartermaster.cel.legal_key" -}}
{{ . }}.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && {{ . }}.indexOf('/') <= 244 && !{{ . }}.contains('kubernetes.io/') && !{{ . }}.startsWith('requests.')
{{- end }}

{{- /* Whether the label `.` of a ConfigMap is judged. */}}
{{- define "quartermaster.cel.judged_label" -}}
({{ . }}.startsWith('features.cpaas.io/') || {{ . }}.startsWith('features.alauda.io/'))
{{- end }}

{{- /* The keys by which pods ask for cards: the list managedResources of docs/scheduling.md. */}}
{{- define "quartermaster.cel.managed" -}}
['nvidia.com/gpu', 'nvidia.com/gpu.shared', 'nvidia.com/mps-core', 'nvidia.com/mps-memory', 'tencent.com/vcuda-core', 'tencent.com/vcuda-memory', 'nvidia.com/gpualloc', 'nvidia.com/gpumem', 'nvidia.com/gpucores', 'nvidia.com/gpumem-percentage', 'aliyun.com/gpu-mem', 'aliyun.com/gpu-count', 'aliyun.com/gpu-core.percentage']
{{- end }}

{{- /* The keys by which pods ask for cards that the ledger counts against limits, also those that other schedulers give out. */}}
{{- define "quartermaster.cel.counted" -}}
({{ include "quartermaster.cel.managed" . }} + {{ include "quartermaster.cel.foreign" . }})
{{- end }}
{{- define "quartermaster.cel.foreign" -}}
['aliyun.com/gpu', 'volcano.sh/vgpu-number', 'volcano.sh/vgpu-memory', 'volcano.sh/vgpu-memory-percentage', 'volcano.sh/vgpu-cores', 'tke.cloud.tencent.com/qgpu-core', 'tke.cloud.tencent.com/qgpu-memory']
{{- end }}

{{- /* Whether the list of containers `.` is longer than any pod needs. A policy that reads every limit of such a pod would exceed the
server's budget, and with `Ignore` the pod would pass. Reading one map takes time that grows with the square of its size. */}}
{{- define "quartermaster.cel.crowded" -}}
(size({{ . }}) > 1024 || {{ include "quartermaster.cel.limits" . }} > 4096)
{{- end }}
{{- define "quartermaster.cel.crowded_text" -}}
the pod has more than 1024 containers or 4096 limits: more than is judged
{{- end }}

{{- /* Those of them whose plugins learn from a pod's annotations, or from the order of pods, whose share a container gets. */}}
{{- define "quartermaster.cel.shares" -}}
['tencent.com/vcuda-core', 'tencent.com/vcuda-memory', 'nvidia.com/gpualloc', 'nvidia.com/gpumem', 'nvidia.com/gpucores', 'nvidia.com/gpumem-percentage', 'aliyun.com/gpu-mem', 'aliyun.com/gpu-count', 'aliyun.com/gpu-core.percentage']
{{- end }}

{{- /* The end of the message for a pod that asks for cards but would bypass the scheduler that counts them. */}}
{{- define "quartermaster.scheduler.refusal" -}}
, which the scheduler quartermaster gives out, but spec.schedulerName is default-scheduler: set spec.schedulerName to quartermaster and tolerate the taint quartermaster.io/accelerator, or leave the pod to the default scheduler by the label quartermaster.io/scheduler=ignore
{{- end }}

{{- /* The pod spec of a pod or of a template that controllers make pods from. */}}
{{- define "quartermaster.template_spec" -}}
(object.kind == 'Pod' ? dyn(object).spec : object.kind == 'CronJob' ? dyn(object).spec.jobTemplate.spec.template.spec : dyn(object).spec.template.spec)
{{- end }}

{{- /* All namespaces but the system's, our own, and those with the label of the second item and value `allow`. */}}
{{- define "quartermaster.spared_namespaces" -}}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ list "kube-system" "kube-public" "kube-node-lease" (index . 0).Release.Namespace | uniq | toJson }}}
    - {key: {{ index . 1 }}, operator: NotIn, values: [allow]}
{{- end }}

{{- /* Pods that no controller made: of the others no one reads a warning. */}}
{{- define "quartermaster.people_alone" -}}
objectSelector:
  matchExpressions:
    - {key: pod-template-hash, operator: DoesNotExist}
    - {key: controller-revision-hash, operator: DoesNotExist}
    - {key: batch.kubernetes.io/job-name, operator: DoesNotExist}
{{- end }}
