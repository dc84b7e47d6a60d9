// The views of the page, each by the address that shows it and the heading that it has.
import { node_name } from './answers.mjs';

export const views_of = (node, pod = 'team-a/infer-0') => ({
  overview: ['/overview', 'Overview', '总览'],
  fleet: ['/fleet', 'Fleet', '集群'],
  node: [`/node/${node}`, `Node ${node}`, `节点 ${node}`],
  pods: ['/pods', 'Pods', 'Pod'],
  pod: [`/pod/${encodeURIComponent(pod)}`, `Pod ${pod}`, `Pod ${pod}`],
  waiting: ['/waiting', 'Waiting pods', '等待中的 Pod'],
  namespaces: ['/namespaces', 'Namespaces', '命名空间'],
  cost: ['/cost', 'Cost', '费用'],
  declarations: ['/declarations', 'Declarations', '资源声明'],
  capacity: ['/capacity', 'Capacity', '容量'],
  history: ['/history', 'History', '历史'],
});
export const views = views_of(node_name(1));
export const heading_of = (page) => page.$eval('h1', (heading) => heading.textContent);
export const text_of = (page) => page.$eval('main', (main) => main.innerText);
export const wait_for_text = (page, text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), { timeout: 15000 }, text);
