import type { noticeEn } from './notice.en'

/** Что говорит уведомление по-русски. */
export const noticeRu: Record<keyof typeof noticeEn, string> = {
  noticeMessagesOne: '{n} новое сообщение',
  noticeMessagesFew: '{n} новых сообщения',
  noticeMessagesMany: '{n} новых сообщений',
  noticeMessagesOther: '{n} нового сообщения',
  noticeFile: 'Гермес прислал файл',
  noticeCard: 'Гермес ждёт вашего ответа',
  noticeReview: 'Откройте, чтобы прочитать целиком и ответить.',
  noticeDevice: 'Ваши устройства: {name}. Если вы его не знаете, откройте страницу и отзовите его.',
  noticeDevices: 'Среди ваших устройств что-то изменилось. Откройте страницу, чтобы посмотреть.',
  noticeWake: 'Есть что-то новое',
  noticeTest: 'Уведомления работают.',
  noticeNothing: 'Ничего нового больше нет',
  noticeAllow: 'Разрешить',
  noticeDeny: 'Отклонить',
  noticeAllowed: 'Разрешено.',
  noticeDenied: 'Отклонено.',
  noticeAnswered: 'Ответ: {what}',
  noticeBefore: 'Это уже было решено.',
  noticeOver: 'Время для ответа вышло.',
  noticeRefused: 'Сервер не принял ответ. Откройте страницу, чтобы узнать, что стало с вопросом.',
  noticeNotReached: 'Сервер недоступен. Попробуйте ещё раз или откройте страницу, чтобы узнать, дошёл ли ответ.',
}
