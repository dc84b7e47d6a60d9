// The views of the page, each by the address that shows it and the heading that it has.
import { node_name } from './answers.mjs';

export const views = {
  fleet: ['/fleet', 'Fleet', '集群'],
  node: [`/node/${node_name(1)}`, `Node ${node_name(1)}`, `节点 ${node_name(1)}`],
  waiting: ['/waiting', 'Waiting pods', '等待中的 Pod'],
  namespaces: ['/namespaces', 'Namespaces', '命名空间'],
  declarations: ['/declarations', 'Declarations', '资源声明'],
  capacity: ['/capacity', 'Capacity', '容量'],
  history: ['/history', 'History', '历史'],
};
export const heading_of = (page) => page.$eval('h1', (heading) => heading.textContent);
export const text_of = (page) => page.$eval('main', (main) => main.innerText);
