/** The page's own icons, 24 by 24, in the colour of the text. */
const paths = {
  send: 'M4 12 20 4l-5 16-3-6.5L4 12Zm8 1.5L20 4',
  stop: 'M7 7h10v10H7z',
  attach: 'm20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.5 8.4a1.7 1.7 0 0 1-2.4-2.4L14.5 7',
  mic: 'M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3ZM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21',
  camera: 'M4 8h3.5L9 5.5h6L16.5 8H20v11H4zM12 16.5a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4Z',
  photo: 'M4 5h16v14H4zM4 16l4.5-4.5 4 4 2.5-2.5 5 5M15.5 9.5h.01',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  download: 'M12 4v11m0 0-4.5-4.5M12 15l4.5-4.5M5 20h14',
  reply: 'M9 6 4 11l5 5M4 11h9a7 7 0 0 1 7 7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  share: 'M12 15V4m0 0L8 8m4-4 4 4M5 12v8h14v-8',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  down: 'm6 9 6 6 6-6',
  close: 'M6 6l12 12M18 6 6 18',
  menu: 'M4 7h16M4 12h16M4 17h10',
  back: 'm14 6-6 6 6 6',
  add: 'M12 5v14M5 12h14',
  settings: 'M4 7h9m4 0h3M4 17h3m4 0h9M15 9.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4ZM9 19.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4Z',
  retry: 'M19 12a7 7 0 1 1-2-5m2-3v4h-4',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3 2',
  check: 'm5 13 4 4L19 7',
  checks: 'm2 13 4 4L15 7m-4 9 1 1L22 7',
  warning: 'M12 4 2.8 20h18.4zM12 10v4.5m0 2.5h.01',
  tool: 'm14.5 6.5 3-3a5 5 0 0 1-6.3 6.3L5 16a2.1 2.1 0 0 0 3 3l6.200-6.200a5 5 0 0 0 6.300-6.300l-3 3-2.500-.500z',
  play: 'M7 4.500v15l12.500-7.500z',
  pause: 'M7 5h3.500v14H7zM13.500 5H17v14h-3.500z',
  trash: 'M5 7h14M9.500 7V4h5v3M7 7l1 13h8l1-13',
  shield: 'M12 3 5 6v5c0 5 3 8.500 7 10 4-1.500 7-5 7-10V6z',
  question: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.700.400-1 .900-1 1.700m0 3h.01',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
