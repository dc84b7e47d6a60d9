// Answers of the console for a cluster of any size, in the shapes of console/api.md. The same number gives the same answers.

export const start = 1795608000; // seconds since 1970
const nothing = { en: '', zh: '' }; // there is no message

// mulberry32: small, and the same everywhere.
function random_numbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const models = [['NVIDIA-A100-SXM4-80GB', 81920], ['NVIDIA-H100-80GB-HBM3', 81559], ['Tesla-T4', 15360]];
const modes = ['pgpu', 'vgpu', 'hami', 'share'];
const phases = ['Ready', 'Draining', 'Verifying', 'Stuck'];
const teams = ['team-a', 'team-b', 'research', 'serving'];

/// A sentence in both languages.
const both = (en) => ({ en, zh: `（${en}）` });

// Its row in the fleet says what node_of says.
const changing_node = 1;

// A text that is the same in both languages.
const same = (text) => ({ en: text, zh: text });

export const node_name = (index) => `gpu-${String(index + 1).padStart(5, '0')}`;

function card_of(random, model, mode) {
  const [, memory] = models[model];
  const flags = (random() < 0.01 ? 1 : 0) | (random() < 0.01 ? 2 : 0);
  const namespace = () => Math.floor(random() * (teams.length + 1)) - 1;
  if (mode === 0) {
    return random() < 0.7 ? [model, memory, flags | 8, 100, memory, [[100, memory, namespace()]]] : [model, memory, flags, 0, 0];
  }
  const shares = [];
  let cores = 0;
  let used = 0;
  while (random() < 0.75 && shares.length < 6) {
    const part = 10 + 10 * Math.floor(random() * 3);
    const mib = Math.floor((memory * part) / 100);
    if (cores + part > 100) break;
    shares.push([part, mib, namespace()]);
    cores += part;
    used += mib;
  }
  return shares.length ? [model, memory, flags, cores, used, shares] : [model, memory, flags, 0, 0];
}

export function fleet_of(count) {
  const random = random_numbers(count);
  const nodes = [];
  for (let index = 0; index < count; index++) {
    const mode = Math.floor(random() * modes.length);
    const model = Math.floor(random() * models.length);
    const cards = Array.from({ length: 8 }, () => card_of(random, model, mode));
    const is_changing = random() < 0.02;
    const flags = (random() < 0.01 ? 1 : 0) | (random() < 0.02 ? 2 : 0) | (is_changing ? 4 : 0) | (random() < 0.01 ? 8 : 0) |
      (cards.some(([, , sum]) => sum & 1) ? 16 : 0);
    if (index === changing_node) {
      const known = Array.from({ length: 8 }, (hole, card) => [0, models[0][1], (card === 5 ? 1 : 0) | (card === 6 ? 2 : 0),
        ...(card < 4 ? [80, 40960, [[50, 20480, 0], [30, 20480, -1]]] : [0, 0])]);
      nodes.push([node_name(index), 1, 1, 4 | 16, known]);
      continue;
    }
    nodes.push([node_name(index), mode, is_changing ? 1 + (index % 3) : 0, flags, cards]);
  }
  return { total: count, offset: 0, models: models.map(([name]) => name), modes, phases, namespaces: teams, nodes };
}

function node_of(name) {
  const links = (row, column) => (row === column ? 'X' : row >> 2 === column >> 2 ? (row ^ column) === 1 ? 'NV12' : 'PIX' : 'SYS');
  const card = (index) => ({
    index, uuid: `GPU-00000000-0000-0000-0000-${String(index).padStart(12, '0')}`, model: models[0][0], memoryMiB: models[0][1], numa: index >> 2,
    health: index === 5 ? 'XID 79' : 'Healthy', healthy: index !== 5, cordoned: index === 6, mig: false, cores: index < 4 ? 80 : 0,
    usedMiB: index < 4 ? 40960 : 0, sharers: index < 4 ? 2 : 0, maxSharers: 16, warnings: index === 5 ? ['ECC errors are pending'] : [],
    shares: index < 4 ? [
      { namespace: 'team-a', pod: `infer-${index}`, container: 'main', whole: false, cores: 50, memoryMiB: 20480, guessed: index === 1 },
      { namespace: null, pod: null, container: null, whole: false, cores: 30, memoryMiB: 20480, guessed: false }] : [],
  });
  const steps = ['Waiting', 'Draining', 'Removing', 'Enrolling', 'Verifying', 'Ready'];
  return {
    name, address: '10.0.0.3', ready: true, cordoned: false, mode: 'vgpu', requestedMode: 'pgpu', phase: 'Draining', reason: 'WaitingForPods', message: null,
    driver: '550.54.15', cuda: '12.4', reportIsOld: false, cards: Array.from({ length: 8 }, (hole, index) => card(index)),
    topology: Array.from({ length: 8 }, (row_hole, row) => Array.from({ length: 8 }, (hole, column) => links(row, column))),
    change: { source: 'vgpu', target: 'pgpu', since: start, step: 'Draining', stuck: false,
      steps: steps.map((phase, index) => ({ phase, state: index < 1 ? 'done' : index === 1 ? 'now' : 'later' })),
      blockers: [{ namespace: 'team-a', name: 'infer-0' }, { namespace: 'team-a', name: 'infer-1' }], hiddenBlockers: 2 },
    resources: [{ name: 'tencent.com/vcuda-core', capacity: 800, allocatable: 800, requested: 320 },
      { name: 'tencent.com/vcuda-memory', capacity: 2560, allocatable: 2560, requested: null }],
    preflight: [{ check: 'driver', state: 'ok', found: same('550.54.15'), remedy: same('') },
      { check: 'default_runtime', state: 'warning', found: same('runc'),
        remedy: { en: 'Set nvidia as the default runtime.', zh: '请将 nvidia 设为默认运行时。' } },
      { check: 'device_files', state: 'failed', found: { en: '7 of 8', zh: '8 个中有 7 个' }, remedy: same('Load nvidia-uvm.') }],
  };
}

function waiting_of(count, { namespace, offset, limit }) {
  const total = namespace ? Math.ceil(count / 8) : Math.ceil(count / 4);
  const pods = [];
  for (let index = offset; index < Math.min(total, offset + limit); index++) {
    const kind = ['fits_nowhere', 'quota', 'unknown_resource', 'kept_for_others', 'closed', 'held_back', 'other'][index % 7];
    pods.push({
      namespace: namespace || teams[index % 2], name: `train-${index}`, asks: { 'nvidia.com/gpu': 4 }, kind,
      reason: both(`0 of ${count} nodes fit: ${count - 1} need more whole cards.`), nodes: count, fitting: 0, refusedBefore: null,
      closed: kind === 'closed' ? [{ reason: both('taint dedicated=team-x:NoSchedule is not tolerated'), nodes: 2 }] : [],
      unserved: index === 3 ? [both('No node has nvidia.com/gpu. Module pgpu offers it and no node is in its mode: label a node nvidia-device-enable=pgpu.')] : [],
      causes: [{ code: 'whole_cards', reason: both('not enough whole cards'), nodes: count - 1, container: 'main', key: null },
        { code: 'not_offered', reason: both('the node does not offer it'), nodes: 1, container: null, key: 'nvidia.com/gpu' }],
      changeOfPod: index % 3 !== 1 ? { code: 'lower', key: 'nvidia.com/gpu', container: 'main', current: 4, amount: 1,
        text: both('container main: nvidia.com/gpu from 4 to 1') } : null,
      changeOfNode: index % 3 !== 1 ? { code: 'empty_card', amount: 0, text: both('gpu-00002: 1 card less in use') } : null,
      nearestNode: index % 3 !== 1 ? 'gpu-00002' : null, command: null,
      changes: index % 3 !== 1 ? [{ kind: 'mode', text: both('change idle node gpu-00003 from mode vgpu to mode pgpu'),
        command: 'kubectl label node gpu-00003 nvidia-device-enable=pgpu --overwrite' },
      { kind: 'pod', text: both('container main: nvidia.com/gpu from 4 to 1'), command: null }] : [],
      quota: kind === 'quota' ? both('research: cores 400 of 400 used') : null,
    });
  }
  return { total, offset, pods };
}

function pods_of(count, { namespace, offset, limit }) {
  const total = namespace ? Math.ceil(count / 4) : count;
  const pods = [];
  for (let index = offset; index < Math.min(total, offset + limit); index++) {
    const whole = index % 3 === 0;
    const card = (number) => ({ index: number, model: models[index % 3][0], whole, cores: whole ? 100 : 30, memoryMiB: whole ? models[index % 3][1] : 4096, guessed: index % 7 === 6 });
    const cards = whole ? [card(0), card(1)] : [card(index % 8)];
    pods.push({ namespace: namespace || teams[index % 4], name: `infer-${index}`, node: node_name(index % count), phase: 'Running', reason: index % 9 === 8 ? 'CrashLoopBackOff' : '',
      ready: index % 9 !== 8, restarts: index % 9 === 8 ? 12 : 0, since: start - 3600 * (index + 1), cores: cards.reduce((sum, { cores }) => sum + cores, 0),
      memoryMiB: cards.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0), use: index % 5 === 4 ? null : whole ? 153 : 12, cards });
  }
  return { total, offset, message: '', messages: nothing, pods };
}

function pod_of(namespace, name) {
  const happened = (time, kind, container, reason, said, warning = false, times = 1) => ({ time: start - time, kind, container, reason, text: said, warning, count: times });
  return { ...pods_of(10, { namespace: '', offset: 0, limit: 1 }).pods[0], namespace, name, isolation: 'mps', restarts: 1,
    moments: [happened(7200, 'created', '', '', ''), happened(7190, 'scheduled', '', 'PodScheduled', ''), happened(7180, 'started', 'main', '', ''),
      happened(3600, 'ended', 'main', 'OOMKilled', '137', true), happened(3500, 'event', '', 'BackOff', 'Back-off restarting failed container', true, 4),
      happened(3400, 'started', 'main', '', '')],
    eventsMessage: '', eventsMessages: nothing };
}

function namespaces_of(count) {
  const names = Array.from({ length: Math.min(200, Math.max(4, Math.ceil(count / 10))) }, (hole, index) => teams[index] ?? `team-${index}`);
  return {
    namespaces: names.map((name, index) => ({
      name, pods: 2 + index, waiting: index % 3, used: { cards: 2 + index, cores: 160 + 10 * index, memoryMiB: 21504 + 1024 * index },
      cohort: index % 4 === 3 ? null : 'research', cost: null,
      quota: index % 4 === 3 ? null : [
        { model: '', resource: 'cores', nominal: 150, used: 160 + 10 * index, borrowed: 10 + 10 * index, lent: 0, scope: '' },
        { model: 'Tesla-T4', resource: 'memory', nominal: 40960, used: 21504, borrowed: 0, lent: 4096, scope: 'pool a' }],
    })),
    costMessage: 'No prices are set, so there is no cost.',
    costMessages: { en: 'No prices are set, so there is no cost.', zh: '未设置价格，因此没有费用。' },
  };
}

function cost_of(count, month) {
  const names = Array.from({ length: Math.min(200, Math.max(4, Math.ceil(count / 10))) }, (hole, index) => teams[index] ?? `team-${index}`);
  return {
    month, months: ['2026-11', '2026-10'], countedSince: 1793491200, countedUntil: 1795000000, amount: '4711.50 EUR',
    rows: names.map((namespace, index) => ({ namespace, model: index % 3 === 2 ? 'Tesla-T4' : 'A100-SXM4-80GB', mode: index % 2 ? 'vGPU' : 'pGPU', gpuHours: 12.5 * (index + 1),
      hundredths: index % 4 === 3 ? null : 1250 * (index + 1), amount: index % 4 === 3 ? null : `${12.5 * (index + 1)} EUR` })),
    models: [{ model: 'A100-SXM4-80GB', capacity: 3360, used: 2100.25, idle: 1000, unhealthy: 259.75, unattributed: 0, beyond: 0, idleAmount: '1200.00 EUR' },
      { model: 'Tesla-T4', capacity: 100, used: 40, idle: 55, unhealthy: 0, unattributed: 5, beyond: 0, idleAmount: null }],
    message: 'Not in the cost, without a price: Tesla-T4.',
    messages: { en: 'Not in the cost, without a price: Tesla-T4.', zh: '因没有价格而未计入费用：Tesla-T4。' },
  };
}

function declarations_of() {
  return {
    namespace: 'kube-public',
    resources: [
      { name: 'cf-crl-gpu', key: 'nvidia.com/gpu', label: { en: 'GPU', zh: '显卡' }, verdict: 'accepted', findings: [], nodes: 3 },
      { name: 'cf-crl-share', key: 'nvidia.com/gpu.shared', label: { en: 'Time slices', zh: '时间片' }, verdict: 'warning', nodes: null,
        findings: [{ code: 'no_node', en: 'no node offers it', zh: '没有节点提供该资源' }] },
      { name: 'cf-crl-broken', key: '', label: { en: '', zh: '' }, verdict: 'refused', nodes: 0,
        findings: [{ code: 'limits_unknown', en: 'limits: "optionl" is none of disabled, optional, required', zh: 'limits：“optionl” 不在可选值中' }] }],
    enforcement: 'Warn', lookedAt: 40,
    violations: [{ namespace: 'team-a', pod: 'infer-0',
      reasons: [{ en: 'container main: tencent.com/vcuda-memory is required', zh: '容器 main：需要 tencent.com/vcuda-memory' }] }],
    moreViolations: 0,
  };
}

const finding = (outcome, code, text, command, nodes = [], remedy = null) => ({
  step: 'node', name: both('node'), outcome, code, text: both(text), remedy: remedy && both(remedy), command, count: nodes.length, nodes: nodes.slice(0, 5) });

function overview_of(count) {
  const { nodes } = fleet_of(count);
  const cards = nodes.flatMap(([, , , , list]) => list);
  const good = (part, text) => ({ part, outcome: 'good', text: both(text), findings: [] });
  return {
    health: { problems: 3, parts: [
      good('leader', 'quartermaster-6d5f9 leads'),
      good('scheduler', 'Dedicated: pods are sent to quartermaster-scheduler'),
      good('modules', 'AcceleratorPolicy default is ready: 4 modules on'),
      good('declarations', 'enforcement Warn'),
      { part: 'quotas', outcome: 'wrong', text: null, findings: [finding('wrong', 'quota_not_enforced', 'no one enforces AcceleratorQuota team-b/limits: NoSchedulerAsks',
        'kubectl describe acceleratorquota limits -n team-b', [], 'do what it says, or delete the quota: pods of its namespace are not held to it')] },
      { part: 'nodes', outcome: 'wrong', text: null, findings: [
        finding('wrong', 'cards_sick', 'the agent finds cards sick: GPU-00000000-0000-0000-0000-000000000005 (XID 79)', 'quartermaster verify gpu-00002',
          ['gpu-00002', 'gpu-00007'], 'kubectl describe anode gpu-00002 and dmesg (Xid) of the node say more'),
        finding('warning', 'cards_cordoned', 'cards out of use by annotation quartermaster.io/cordon: GPU-6', 'kubectl annotate node gpu-00002 quartermaster.io/cordon-', ['gpu-00002']),
        finding('changing', 'waits_for_pods', 'the change of mode waits for pods that hold the old mode’s cards: team-a/infer-0, team-a/infer-1', 'quartermaster verify gpu-00002',
          ['gpu-00002'], 'let them end or delete them')] }] },
    gpus: { total: cards.length, allocatedCores: cards.reduce((sum, card) => sum + card[3], 0), free: cards.filter((card) => card[3] === 0).length, withoutMode: 0,
      cordoned: cards.filter((card) => card[2] & 2).length, unhealthy: cards.filter((card) => card[2] & 1).length },
    waiting: { pods: Math.ceil(count / 4), since: start - 7200, namespace: 'team-a', name: 'train-0' },
    cost: { amount: '12345.67 EUR', message: '', messages: nothing },
  };
}

function measured_of(count) {
  const random = random_numbers(count + 7);
  return { message: '', messages: nothing, nodes: Object.fromEntries(fleet_of(count).nodes.map(([name, , , , cards]) => [name, cards.map((card) => Math.floor(card[3] * random()))])) };
}

function reasons_of(count) {
  const total = Math.ceil(count / 4);
  const group = (kind, part, reason, change, command, example) => ({ kind, reason: both(reason), change: change && both(change), command, pods: Math.ceil(total * part), since: start - 7200,
    examples: [{ namespace: 'team-a', name: example }] });
  return { total, lookedAt: total, groups: [
    group('quota', 0.5, 'cohort research of namespace team-a may use 3000 cores, uses 2950, asks for 400', 'lower nvidia.com/gpu of container main from 4 to 1 (fits on node gpu-00004)', 'quartermaster explain pod train-0 -n team-a', 'train-0'),
    group('fits_nowhere', 0.3, `fits on 0 of ${count} nodes: ${count} too few free cards`, 'lower nvidia.com/gpu of container main from 8 to 4 (fits on node gpu-00002)',
      'quartermaster explain pod train-1 -n team-a', 'train-1'),
    group('fits_nowhere', 0.2, `fits on 0 of ${count} nodes: ${count} resource not offered in the node's mode`, 'put card GPU-6 of node gpu-00002 back into use',
      'kubectl annotate node gpu-00002 quartermaster.io/cordon-', 'infer-9')] };
}

function capacity_of(count) {
  // Sums of usable cards, of which 7 of 10 are in use. A whole card is all of its cores and memory; shares leave some that no one can have.
  const row = (model, mode, days) => {
    const usable = 8 * count - 2;
    const busy = Math.floor(0.7 * usable);
    const stranded = mode === 'pgpu' ? 0 : Math.floor(busy / 8);
    const [name, memory] = models[model];
    return {
      model: name, mode, nodes: count, cards: 8 * count, usable, unhealthy: 1, cordoned: 1, free: usable - busy, cores: 100 * usable, usedCores: (mode === 'pgpu' ? 100 : 80) * busy,
      memoryMiB: usable * memory, usedMiB: Math.floor((mode === 'pgpu' ? 1 : 0.6) * busy * memory),
      strandedCores: 20 * stranded, strandedMiB: Math.floor(0.25 * stranded * memory), strandedCards: stranded, daysUntilFull: days };
  };
  const idle = { ...row(2, '', null), free: 8 * count - 2, usedCores: 0, usedMiB: 0, strandedCores: 0, strandedMiB: 0, strandedCards: 0 };
  return { models: [row(0, 'pgpu', 9.5), row(1, 'vgpu', 120), row(2, 'share', null), idle], trendMessage: '', trendMessages: nothing };
}

const spans = { '30m': 1800, '1h': 3600, '6h': 21600, '12h': 43200, '24h': 86400, '2d': 172800, '7d': 604800 };

function history_of({ chart, range, from, to }, count) {
  const first = range === 'custom' ? Number(from) : start - spans[range];
  const last = range === 'custom' ? Number(to) : start;
  const step = Math.max(15, Math.ceil((last - first) / 240));
  const times = [];
  for (let time = first; time <= last; time += step) times.push(time);
  const unit = { memory: 'bytes', pod_memory: 'bytes', cards: 'cards', namespace_cores: 'cards' }[chart] ?? 'ratio';
  const scale = { bytes: 80 * 2 ** 30, cards: 40, ratio: 1 }[unit];
  const random = random_numbers(times.length);
  const containers = { pod_utilization: ['main'], pod_memory: ['main', 'main, given'] }[chart];
  const name_of = (index) => (containers ? containers[index] : chart.startsWith('namespace_') ? `team-${index}` : node_name(index));
  const series = Array.from({ length: containers?.length ?? Math.min(20, count) }, (hole, index) => ({
    name: name_of(index), labels: { node: node_name(index) },
    values: times.map((time, position) => (position % 50 === 49 ? null
      : scale * (0.5 + 0.4 * Math.sin(position / (30 + 3 * index) + index) + 0.03 * random()))),
  }));
  return { available: true, message: '', messages: nothing, chart, from: first, to: last, step, unit, times, series, more: series.length >= 20 };
}

export const me = {
  user: 'system:serviceaccount:team-a:viewer', signedInBy: 'token', allNamespaces: true, namespaces: teams, lacksNamespaces: false, prometheus: true, version: '0.1.0',
  views: { overview: true, fleet: true, node: true, pods: true, waiting: true, namespaces: true, cost: true, declarations: true, capacity: true, history: true },
};

/// answer(path, query) for a cluster of `count` nodes; null: there is no such path. `path` is what follows api/v1/.
export function cluster_of(count) {
  const fleet = fleet_of(count);
  const [overview, measured, reasons] = [overview_of(count), measured_of(count), reasons_of(count)];
  return (path, query) => {
    const number = (name, otherwise) => Number(query.get(name) ?? otherwise);
    if (path === 'me') return me;
    if (path === 'fleet') return fleet;
    if (path === 'overview') return overview;
    if (path === 'measured') return measured;
    if (path === 'waiting/reasons') return reasons;
    if (path.startsWith('nodes/')) return node_of(path.slice('nodes/'.length));
    if (path.startsWith('pods/')) return pod_of(...path.split('/').slice(1).map(decodeURIComponent));
    if (path === 'pods') return pods_of(count, { namespace: query.get('namespace'), offset: number('offset', 0), limit: number('limit', 50) });
    if (path === 'waiting') return waiting_of(count, { namespace: query.get('namespace'), offset: number('offset', 0), limit: number('limit', 50) });
    if (path === 'namespaces') return namespaces_of(count);
    if (path === 'cost') return cost_of(count, query.get('month') ?? '2026-11');
    if (path === 'declarations') return declarations_of();
    if (path === 'capacity') return capacity_of(count);
    if (path === 'history') return history_of(Object.fromEntries(query), count);
    return null;
  };
}

/// The same answer with each text of people replaced by HTML that would set window.harm. Words of the API stay.
export function with_html(body) {
  const words = new Set(['mode', 'requestedMode', 'phase', 'state', 'kind', 'resource', 'verdict', 'enforcement', 'unit', 'chart', 'step', 'source',
    'target', 'signedInBy', 'part', 'outcome', 'code']);
  const html = (text) => `<img src=x onerror="window.harm=1"><script>window.harm=1</script>${text}`;
  const change = (value, name) => {
    if (typeof value === 'string') return words.has(name) ? value : html(value);
    if (Array.isArray(value)) return value.map((item) => change(item, name));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [name === 'asks' ? html(key) : key, change(item, key)]));
  };
  return change(body, '');
}
